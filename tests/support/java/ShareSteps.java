import com.fasterxml.jackson.databind.ObjectMapper;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Share groups, as Kafka's own share consumer takes part in them. */
public final class ShareSteps {
    private static final Duration LIMIT = Duration.ofSeconds(60);
    private final Map<String, Object> cluster;
    private final Map<String, Object> seen = new LinkedHashMap<>();

    private ShareSteps(String bootstrap) {
        cluster = Cluster.settings(bootstrap);
    }

    public static void main(String[] arguments) throws Exception {
        ShareSteps steps = new ShareSteps(arguments[0]);
        switch (arguments[1]) {
            case "share" -> steps.share(arguments[2], arguments[3]);
            case "explicit" -> steps.explicit(arguments[2], arguments[3]);
            case "transactions" -> steps.transactions(arguments[2], arguments[3]);
            case "throughput" -> steps.throughput(arguments[2], arguments[3],
                Integer.parseInt(arguments[4]), Integer.parseInt(arguments[5]));
            default -> throw new IllegalArgumentException(arguments[1]);
        }
        System.out.println(new ObjectMapper().writeValueAsString(steps.seen));
    }

    /** Two members, all records once; what a member leaves behind comes to the other. */
    private void share(String topic, String group) throws Exception {
        configure(group, Map.of("share.auto.offset.reset", "earliest"));
        produce(topic, 0, 900);
        Map<String, Integer> counts = new TreeMap<>();
        try (KafkaShareConsumer<String, String> first = consumer(group, Map.of());
                KafkaShareConsumer<String, String> second = consumer(group, Map.of())) {
            first.subscribe(List.of(topic));
            second.subscribe(List.of(topic));
            int[] got = new int[2];
            long end = System.nanoTime() + LIMIT.toNanos();
            while (counts.size() < 900 && System.nanoTime() < end) {
                got[0] += poll(first, counts);
                got[1] += poll(second, counts);
            }
            first.commitSync();
            second.commitSync();
            seen.put("all", counts.size());
            seen.put("twice", counts.values().stream().filter(count -> count > 1).count());
            produce(topic, 900, 90);
            while (counts.size() < 990 && System.nanoTime() < end) {
                poll(first, counts);
                poll(second, counts);
            }
            first.commitSync();
            second.commitSync();
            seen.put("more", counts.size());
        }
        try (KafkaShareConsumer<String, String> third = consumer(group, Map.of())) {
            third.subscribe(List.of(topic));
            Map<String, Integer> left = new TreeMap<>();
            for (int turn = 0; turn < 10; turn++) {
                poll(third, left);
            }
            produce(topic, 990, 10);
            long end = System.nanoTime() + LIMIT.toNanos();
            while (left.size() < 10 && System.nanoTime() < end) {
                poll(third, left);
            }
            seen.put("new only", left.size());
        }
    }

    /** Accept, release, reject and renew one by one; then the records are lost by the log. */
    private void explicit(String topic, String group) throws Exception {
        configure(group, Map.of("share.auto.offset.reset", "earliest", "share.delivery.count.limit", "3"));
        produce(topic, 0, 10);
        try (Admin admin = admin();
                KafkaShareConsumer<String, String> consumer = consumer(group,
                    Map.of("share.acknowledgement.mode", "explicit", "share.acquire.mode", "record_limit",
                        "max.poll.records", "4"))) {
            consumer.subscribe(List.of(topic));
            List<ConsumerRecord<String, String>> records = next(consumer);
            seen.put("limit", values(records));
            consumer.acknowledge(records.get(0), AcknowledgeType.ACCEPT);
            consumer.acknowledge(records.get(1), AcknowledgeType.RELEASE);
            consumer.acknowledge(records.get(2), AcknowledgeType.REJECT);
            consumer.acknowledge(records.get(3), AcknowledgeType.RENEW);
            seen.put("committed", errors(consumer.commitSync()));
            List<ConsumerRecord<String, String>> again = next(consumer);
            seen.put("again", values(again));
            again.forEach(record -> consumer.acknowledge(record,
                record.value().equals("v1") ? AcknowledgeType.RELEASE : AcknowledgeType.ACCEPT));
            seen.put("and again", errors(consumer.commitSync()));
            Map<String, Short> deliveries = new TreeMap<>();
            Set<String> wanted = Set.of("v1", "v4", "v5", "v6", "v7", "v8", "v9");
            long end = System.nanoTime() + LIMIT.toNanos();
            while (!deliveries.keySet().containsAll(wanted) && System.nanoTime() < end) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    deliveries.put(record.value(), record.deliveryCount().get());
                    consumer.acknowledge(record, AcknowledgeType.ACCEPT);
                }
                consumer.commitSync();
            }
            seen.put("deliveries", deliveries);
            produce(topic, 10, 5);
            admin.deleteRecords(Map.of(new TopicPartition(topic, 0), RecordsToDelete.beforeOffset(13)))
                .all().get();
            Set<String> after = new TreeSet<>();
            while (!after.contains("v14") && System.nanoTime() < end) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    after.add(record.value());
                    consumer.acknowledge(record, AcknowledgeType.ACCEPT);
                }
                consumer.commitSync();
            }
            seen.put("ends with", after.contains("v13") && after.contains("v14"));
        }
    }

    /** Records of aborted transactions are not seen by a group that reads what is committed. */
    private void transactions(String topic, String group) throws Exception {
        configure(group, Map.of("share.auto.offset.reset", "earliest", "share.isolation.level", "read_committed"));
        Map<String, Object> config = Cluster.with(cluster,
            Map.of("transactional.id", group, "linger.ms", "0"));
        Set<String> expected = new HashSet<>();
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(
                config, new StringSerializer(), new StringSerializer())) {
            producer.initTransactions();
            for (int round = 0; round < 6; round++) {
                producer.beginTransaction();
                for (int index = 0; index < 5; index++) {
                    String value = "t" + round + "-" + index;
                    producer.send(new ProducerRecord<>(topic, 0, null, value));
                    if (round % 2 == 0) {
                        expected.add(value);
                    }
                }
                producer.flush();
                if (round % 2 == 0) {
                    producer.commitTransaction();
                } else {
                    producer.abortTransaction();
                }
            }
        }
        Set<String> got = new TreeSet<>();
        try (KafkaShareConsumer<String, String> consumer = consumer(group, Map.of())) {
            consumer.subscribe(List.of(topic));
            long end = System.nanoTime() + LIMIT.toNanos();
            while (!got.containsAll(expected) && System.nanoTime() < end) {
                consumer.poll(Duration.ofMillis(200)).forEach(record -> got.add(record.value()));
            }
            for (int turn = 0; turn < 5; turn++) {
                consumer.poll(Duration.ofMillis(100)).forEach(record -> got.add(record.value()));
            }
        }
        seen.put("exactly the committed", got.equals(expected));
    }

    /** How many records a second some members of one group take in. */
    private void throughput(String topic, String group, int count, int members) throws Exception {
        configure(group, Map.of("share.auto.offset.reset", "earliest"));
        List<Thread> threads = new ArrayList<>();
        int[] got = new int[members];
        long[] begin = new long[1];
        long[] last = new long[members];
        for (int member = 0; member < members; member++) {
            int index = member;
            threads.add(new Thread(() -> {
                try (KafkaShareConsumer<String, String> consumer = consumer(group, Map.of())) {
                    consumer.subscribe(List.of(topic));
                    long end = System.nanoTime() + LIMIT.toNanos();
                    while (java.util.Arrays.stream(got).sum() < count && System.nanoTime() < end) {
                        int size = consumer.poll(Duration.ofMillis(200)).count();
                        if (size > 0) {
                            if (begin[0] == 0) {
                                begin[0] = System.nanoTime();
                            }
                            got[index] += size;
                            last[index] = System.nanoTime();
                        }
                    }
                }
            }));
        }
        threads.forEach(Thread::start);
        for (Thread thread : threads) {
            thread.join();
        }
        long end = java.util.Arrays.stream(last).max().getAsLong();
        seen.put("records", java.util.Arrays.stream(got).sum());
        seen.put("seconds", (end - begin[0]) / 1e9);
    }

    private int poll(KafkaShareConsumer<String, String> consumer, Map<String, Integer> counts) {
        int size = 0;
        for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(100))) {
            counts.merge(record.value(), 1, Integer::sum);
            size++;
        }
        return size;
    }

    private List<ConsumerRecord<String, String>> next(KafkaShareConsumer<String, String> consumer) {
        List<ConsumerRecord<String, String>> records = new ArrayList<>();
        long end = System.nanoTime() + LIMIT.toNanos();
        while (records.isEmpty() && System.nanoTime() < end) {
            consumer.poll(Duration.ofMillis(200)).forEach(records::add);
        }
        return records;
    }

    private static List<String> values(List<ConsumerRecord<String, String>> records) {
        return records.stream().map(record -> record.value() + "/" + record.deliveryCount().get()).toList();
    }

    private static long errors(Map<TopicIdPartition, Optional<KafkaException>> outcome) {
        return outcome.values().stream().filter(Optional::isPresent).count();
    }

    private KafkaShareConsumer<String, String> consumer(String group, Map<String, Object> extra) {
        Map<String, Object> config = Cluster.with(cluster, Map.of("group.id", group));
        config.putAll(extra);
        return new KafkaShareConsumer<>(config, new StringDeserializer(), new StringDeserializer());
    }

    private Admin admin() {
        return Admin.create(cluster);
    }

    private void configure(String group, Map<String, String> values) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.GROUP, group);
        try (Admin admin = admin()) {
            admin.incrementalAlterConfigs(Map.of(resource, values.entrySet().stream()
                .map(entry -> new AlterConfigOp(new ConfigEntry(entry.getKey(), entry.getValue()),
                    AlterConfigOp.OpType.SET)).toList())).all().get();
        }
    }

    private void produce(String topic, int first, int count) throws Exception {
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(
                cluster, new StringSerializer(), new StringSerializer())) {
            for (int index = first; index < first + count; index++) {
                producer.send(new ProducerRecord<>(topic, null, "v" + index));
            }
        }
    }
}
