import com.fasterxml.jackson.databind.ObjectMapper;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Groups of the consumer protocol, as Kafka's own consumer takes part in them. */
public final class GroupSteps {
    private static final Duration LIMIT = Duration.ofSeconds(40);
    private final Map<String, Object> cluster;
    private final Map<String, Object> seen = new LinkedHashMap<>();
    private final Set<String> values = new HashSet<>();
    private int duplicates;

    private GroupSteps(String bootstrap) {
        cluster = Cluster.settings(bootstrap);
    }

    public static void main(String[] arguments) throws Exception {
        GroupSteps steps = new GroupSteps(arguments[0]);
        switch (arguments[1]) {
            case "share" -> steps.share(arguments[2], arguments[3]);
            case "pattern" -> steps.pattern(arguments[2], arguments[3]);
            case "migrate" -> steps.migrate(arguments[2], arguments[3]);
            default -> throw new IllegalArgumentException(arguments[1]);
        }
        System.out.println(new ObjectMapper().writeValueAsString(steps.seen));
    }

    private void share(String topic, String group) throws Exception {
        produce(topic, 6, 600);
        try (Admin admin = admin(); Consumer<String, String> first = consumer(group, "consumer", Map.of())) {
            first.subscribe(List.of(topic));
            until(() -> values.size() == 600, first);
            seen.put("alone", first.assignment().size());
            first.commitSync();
            try (Consumer<String, String> second =
                    consumer(group, "consumer", Map.of("group.remote.assignor", "range", "client.rack", "r"))) {
                second.subscribe(List.of(topic));
                until(() -> first.assignment().size() == 3 && second.assignment().size() == 3, first, second);
                seen.put("shared", all(first, second));
                produce(topic, 6, 60);
                until(() -> values.size() == 660, first, second);
                first.commitSync();
                second.commitSync();
                ConsumerGroupDescription description = describe(admin, group);
                seen.put("type", description.type().toString());
                seen.put("state", description.groupState().toString());
                seen.put("members", description.members().size());
                seen.put("upgraded", new TreeSet<>(description.members().stream()
                    .map(member -> member.upgraded().get()).toList()));
                seen.put("epochs", new TreeSet<>(description.members().stream()
                    .map(member -> member.memberEpoch().get() - description.groupEpoch().get()).toList()));
                seen.put("assignor", description.partitionAssignor());
            }
            until(() -> first.assignment().size() == 6, first);
            admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(8))).all().get();
            until(() -> first.assignment().size() == 8, first);
            seen.put("grown", first.assignment().size());
            seen.put("committed", admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get()
                .values().stream().mapToLong(OffsetAndMetadata::offset).sum());
        }
        try (Admin admin = admin()) {
            seen.put("empty", describe(admin, group).groupState().toString());
            admin.deleteConsumerGroups(List.of(group)).all().get();
            seen.put("deleted", admin.listGroups().all().get().stream().noneMatch(g -> g.groupId().equals(group)));
        }
        seen.put("duplicates", duplicates);
    }

    private void pattern(String prefix, String group) throws Exception {
        try (Admin admin = admin(); Consumer<String, String> consumer = consumer(group, "consumer", Map.of())) {
            admin.createTopics(List.of(new NewTopic(prefix + "-1", 2, (short) 1))).all().get();
            consumer.subscribe(new SubscriptionPattern(prefix + "-[0-9]+"));
            until(() -> consumer.assignment().size() == 2, consumer);
            admin.createTopics(List.of(
                new NewTopic(prefix + "-2", 3, (short) 1), new NewTopic(prefix + "-x", 3, (short) 1))).all().get();
            until(() -> consumer.assignment().size() == 5, consumer);
            seen.put("assigned", consumer.assignment().size());
        }
        try (Consumer<String, String> consumer = consumer(group, "consumer", Map.of())) {
            consumer.subscribe(new SubscriptionPattern("[a"));
            try {
                until(() -> false, consumer);
            } catch (RuntimeException error) {
                seen.put("invalid", error.getClass().getSimpleName());
            }
        }
    }

    /** Classic consumers are replaced by modern ones and back, one by one, while records flow. */
    private void migrate(String topic, String group) throws Exception {
        produce(topic, 6, 60);
        try (Admin admin = admin()) {
            Consumer<String, String> a = subscribed(topic, group, "classic");
            Consumer<String, String> b = subscribed(topic, group, "classic");
            until(() -> values.size() == 60 && even(a, b), a, b);
            seen.put("classic", admin.listGroups().all().get().stream()
                .filter(g -> g.groupId().equals(group)).findFirst().get().type().get().toString());
            Consumer<String, String> c = subscribed(topic, group, "consumer");
            until(() -> even(a, b, c), a, b, c);
            ConsumerGroupDescription mixed = describe(admin, group);
            seen.put("mixed", mixed.type().toString());
            seen.put("upgraded", new ArrayList<>(mixed.members().stream()
                .map(member -> member.upgraded().get()).sorted().toList()));
            produce(topic, 6, 60);
            until(() -> values.size() == 120, a, b, c);
            commit(a, b, c);
            a.close();
            b.close();
            Consumer<String, String> d = subscribed(topic, group, "consumer");
            until(() -> even(c, d), c, d);
            seen.put("modern", describe(admin, group).members().stream().allMatch(member -> member.upgraded().get()));
            produce(topic, 6, 60);
            until(() -> values.size() == 180, c, d);
            commit(c, d);
            Consumer<String, String> e = subscribed(topic, group, "classic");
            until(() -> even(c, d, e), c, d, e);
            c.close();
            d.close();
            until(() -> e.assignment().size() == 6, e);
            produce(topic, 6, 60);
            until(() -> values.size() == 240, e);
            seen.put("back", admin.listGroups().all().get().stream()
                .filter(g -> g.groupId().equals(group)).findFirst().get().type().get().toString());
            commit(e);
            e.close();
        }
        seen.put("read", values.size());
    }

    // -- helpers

    private Admin admin() {
        return Admin.create(cluster);
    }

    private static ConsumerGroupDescription describe(Admin admin, String group) throws Exception {
        return admin.describeConsumerGroups(List.of(group)).all().get().get(group);
    }

    private Consumer<String, String> subscribed(String topic, String group, String protocol) {
        Map<String, Object> extra = protocol.equals("classic")
            ? Map.of("heartbeat.interval.ms", 300, "session.timeout.ms", 10000) : Map.of();
        Consumer<String, String> consumer = consumer(group, protocol, extra);
        consumer.subscribe(List.of(topic));
        return consumer;
    }

    private Consumer<String, String> consumer(String group, String protocol, Map<String, Object> extra) {
        Map<String, Object> config = new HashMap<>(extra);
        config.putAll(cluster);
        config.put("group.id", group);
        config.put("group.protocol", protocol);
        config.put("enable.auto.commit", false);
        config.put("auto.offset.reset", "earliest");
        return new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer());
    }

    private void produce(String topic, int partitions, int count) throws Exception {
        Map<String, Object> config = cluster;
        int base = values.size();
        try (var producer = new KafkaProducer<>(config, new StringSerializer(), new StringSerializer())) {
            for (int i = 0; i < count; i++) {
                producer.send(new ProducerRecord<>(topic, i % partitions, null, "v" + (base + i)));
            }
        }
    }

    @SafeVarargs
    private void until(BooleanSupplier condition, Consumer<String, String>... consumers) {
        long end = System.nanoTime() + LIMIT.toNanos();
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() > end) {
                throw new IllegalStateException("not in time: " + seen + " " + values.size() + " "
                    + sizes(consumers));
            }
            for (Consumer<String, String> consumer : consumers) {
                consumer.poll(Duration.ofMillis(50)).forEach(record -> {
                    if (!values.add(record.value())) {
                        duplicates++;
                    }
                });
            }
        }
    }

    @SafeVarargs
    private static boolean even(Consumer<String, String>... consumers) {
        return sizes(consumers).equals(Collections.nCopies(consumers.length, 6 / consumers.length));
    }

    @SafeVarargs
    private static List<Integer> sizes(Consumer<String, String>... consumers) {
        List<Integer> sizes = new ArrayList<>();
        for (Consumer<String, String> consumer : consumers) {
            sizes.add(consumer.assignment().size());
        }
        return sizes;
    }

    @SafeVarargs
    private static void commit(Consumer<String, String>... consumers) {
        for (Consumer<String, String> consumer : consumers) {
            consumer.commitSync();
        }
    }

    @SafeVarargs
    private static int all(Consumer<String, String>... consumers) {
        Set<TopicPartition> partitions = new HashSet<>();
        for (Consumer<String, String> consumer : consumers) {
            partitions.addAll(consumer.assignment());
        }
        return partitions.size();
    }
}
