import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Several producers, each with one transaction right after the other.
 * Each transaction's end is a line: its name, and "committed" or the exception.
 */
public final class TransactionSteps {
    private static final int RECORDS = 100;
    private static final int PARTITIONS = 3;
    private final Map<String, Object> cluster;
    private final String topic;
    private final String other;
    private ConsumerGroupMetadata group;

    private TransactionSteps(String bootstrap, String topic, String other) {
        cluster = Cluster.settings(bootstrap);
        this.topic = topic;
        this.other = other;
    }

    /** Arguments: bootstrap servers, step, topic, second topic or group, producers, transactions of each. */
    public static void main(String[] arguments) throws Exception {
        TransactionSteps steps = new TransactionSteps(arguments[0], arguments[2], arguments[3]);
        Body body = switch (arguments[1]) {
            case "records" -> steps::writeRecords;
            case "offsets" -> {
                steps.group = steps.groupOfNobody();
                yield steps::sendOffsets;
            }
            default -> throw new IllegalArgumentException(arguments[1]);
        };
        int count = Integer.parseInt(arguments[5]);
        List<Thread> threads = new ArrayList<>();
        for (int index = 0; index < Integer.parseInt(arguments[4]); index++) {
            String id = arguments[3] + "-" + index;
            threads.add(new Thread(() -> steps.run(id, body, count)));
        }
        threads.forEach(Thread::start);
        for (Thread thread : threads) {
            thread.join();
        }
    }

    private interface Body {
        void fill(KafkaProducer<String, String> producer, String id, int number);
    }

    /** Records to all partitions of a topic, then one to another topic. */
    private void writeRecords(KafkaProducer<String, String> producer, String id, int number) {
        for (int index = 0; index < RECORDS; index++) {
            producer.send(new ProducerRecord<>(topic, index % PARTITIONS, null, id + "/" + number + "/" + index));
        }
        producer.flush();
        producer.send(new ProducerRecord<>(other, id + "/" + number));
    }

    /** Nothing but an offset, each producer's of a partition of its own. */
    private void sendOffsets(KafkaProducer<String, String> producer, String id, int number) {
        int partition = id.charAt(id.length() - 1) - '0';
        producer.sendOffsetsToTransaction(
            Map.of(new TopicPartition(topic, partition), new OffsetAndMetadata(number + 1)),
            group);
    }

    /** The group as a consumer names it that is no member. */
    private ConsumerGroupMetadata groupOfNobody() {
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(
                Cluster.with(cluster, Map.of("group.id", other)),
                new StringDeserializer(), new StringDeserializer())) {
            return consumer.groupMetadata();
        }
    }

    /** A producer that fails is replaced, and the next transaction begins. */
    private void run(String id, Body body, int count) {
        KafkaProducer<String, String> producer = producer(id);
        for (int number = 0; number < count; number++) {
            try {
                producer.beginTransaction();
                body.fill(producer, id, number);
                producer.commitTransaction();
                System.out.println(id + "/" + number + " committed");
            } catch (KafkaException error) {
                Throwable cause = error;
                while (cause.getCause() != null) {
                    cause = cause.getCause();
                }
                System.out.println(id + "/" + number + " " + cause.getClass().getSimpleName());
                producer.close(Duration.ZERO);
                producer = producer(id);
            }
        }
        producer.close();
    }

    private KafkaProducer<String, String> producer(String id) {
        KafkaProducer<String, String> producer = new KafkaProducer<>(
            Cluster.with(cluster, Map.of("transactional.id", id)),
            new StringSerializer(), new StringSerializer());
        producer.initTransactions();
        return producer;
    }
}
