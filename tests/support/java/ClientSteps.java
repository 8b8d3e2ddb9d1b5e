import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp.OpType;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.AlterConfigsOptions;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.CreatePartitionsOptions;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.CreateTopicsResult;
import org.apache.kafka.clients.admin.DescribeClusterOptions;
import org.apache.kafka.clients.admin.DescribeConfigsOptions;
import org.apache.kafka.clients.admin.DescribeTopicsOptions;
import org.apache.kafka.clients.admin.ListConfigResourcesOptions;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec;
import org.apache.kafka.clients.admin.ListOffsetsOptions;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.MemberToRemove;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicCollection;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionReplica;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * What programs do with Kafka's Java clients, one step a run: ClientSteps bootstrap step names…
 *
 * <p>A step prints what it saw as one JSON object, and judges nothing. An operation that failed is
 * seen as the name of its exception.
 */
public final class ClientSteps {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Duration POLL = Duration.ofMillis(200);
    private static final Duration PATIENCE = Duration.ofSeconds(5);
    private static final long DEADLINE_MS = 30_000;

    private final Map<String, Object> cluster;
    private final Map<String, Object> seen = new LinkedHashMap<>();

    private ClientSteps(String bootstrap) {
        cluster = Cluster.settings(bootstrap);
    }

    public static void main(String[] args) throws Exception {
        ClientSteps steps = new ClientSteps(args[0]);
        String[] names = Arrays.copyOfRange(args, 2, args.length);
        switch (args[1]) {
            case "produce" -> steps.produce(names[0]);
            case "produce-refused" -> steps.produceRefused(names[0], names[1]);
            case "produce-validated" -> steps.produceValidated(names[0], names[1]);
            case "consume" -> steps.consume(names[0], names[1]);
            case "subscribe" -> steps.subscribe(names[0], names[1]);
            case "topics" -> steps.topics(names[0]);
            case "configs" -> steps.configs(names[0]);
            case "offsets" -> steps.offsets(names[0]);
            case "groups" -> steps.groups(names[0], names[1]);
            case "cluster" -> steps.cluster(names[0]);
            case "steady" -> steps.steady(names[0], Integer.parseInt(names[1]));
            case "acls" -> steps.acls(names[0]);
            default -> throw new IllegalArgumentException(args[1]);
        }
        System.out.println(JSON.writeValueAsString(steps.seen));
    }

    // -- the producer

    private void produce(String topic) throws Exception {
        try (Producer<String, String> producer = producer(Map.of())) {
            seen.put("partitions", producer.partitionsFor(topic).size());
            ProducerRecord<String, String> record = new ProducerRecord<>(topic, 1, 1_700_000_000_123L, "k", "v");
            record.headers().add("h", "x".getBytes(StandardCharsets.UTF_8)).add("h", null);
            RecordMetadata first = producer.send(record).get();
            seen.put("first", List.of(first.partition(), first.offset(), first.timestamp()));
            seen.put("sizes", List.of(first.serializedKeySize(), first.serializedValueSize()));
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int i = 0; i < 2000; i++) {
                sent.add(producer.send(new ProducerRecord<>(topic, 0, null, "value " + i)));
            }
            producer.flush();
            List<Long> offsets = new ArrayList<>();
            for (Future<RecordMetadata> future : sent) {
                offsets.add(future.get().offset());
            }
            seen.put("ordered", offsets.equals(range(0, 2000)));
            seen.put("null value", producer.send(new ProducerRecord<>(topic, 1, "k", null)).get().offset());
        }
        // The sequence numbers of a producer begin anew with each of its lives.
        for (String codec : List.of("gzip", "snappy", "lz4", "zstd")) {
            Map<String, Object> config = Map.of(
                ProducerConfig.COMPRESSION_TYPE_CONFIG, codec,
                ProducerConfig.LINGER_MS_CONFIG, 20,
                ProducerConfig.MAX_IN_FLIGHT_REQUESTS_PER_CONNECTION, 5);
            try (Producer<String, String> producer = producer(config)) {
                List<Future<RecordMetadata>> sent = new ArrayList<>();
                for (int i = 0; i < 500; i++) {
                    sent.add(producer.send(new ProducerRecord<>(topic, 2, codec, codec + " " + i)));
                }
                seen.put(codec, sent.get(0).get().offset() + "-" + sent.get(499).get().offset());
            }
        }
    }

    /** Sends numbers one by one, and prints a dot for each that was acknowledged. */
    private void steady(String topic, int count) throws Exception {
        Map<String, Object> config = Map.of(
            ProducerConfig.DELIVERY_TIMEOUT_MS_CONFIG, 60_000, ProducerConfig.RECONNECT_BACKOFF_MAX_MS_CONFIG, 100);
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (Producer<String, String> producer = producer(config)) {
            for (int i = 0; i < count; i++) {
                sent.add(producer.send(new ProducerRecord<>(topic, String.valueOf(i)), (metadata, error) ->
                    System.out.println(error == null ? "." : error.toString())));
                Thread.sleep(1);
            }
        }
        List<Long> offsets = new ArrayList<>();
        for (Future<RecordMetadata> future : sent) {
            offsets.add(future.get().offset());
        }
        seen.put("ordered", offsets.equals(range(0, count)));
    }

    private void produceRefused(String small, String compacted) throws Exception {
        try (Producer<String, String> producer = producer(Map.of(ProducerConfig.MAX_BLOCK_MS_CONFIG, 3000))) {
            seen.put("too large", of(producer.send(new ProducerRecord<>(small, "x".repeat(5000)))));
            seen.put("after it", of(producer.send(new ProducerRecord<>(small, "fits"))));
            seen.put("no key", of(producer.send(new ProducerRecord<>(compacted, "value"))));
            seen.put("key", of(producer.send(new ProducerRecord<>(compacted, "key", "value"))));
            seen.put("no partition", of(producer.send(new ProducerRecord<>(small, 99, null, "value"))));
            seen.put("bad topic", of(producer.send(new ProducerRecord<>("not/a/topic", "value"))));
        }
    }

    /** Two records of one batch, of which the second names no schema; then one by itself. */
    private void produceValidated(String topic, String good) throws Exception {
        try (Producer<String, String> producer = producer(Map.of(ProducerConfig.LINGER_MS_CONFIG, 500))) {
            Future<RecordMetadata> first = producer.send(new ProducerRecord<>(topic, good));
            Future<RecordMetadata> second = producer.send(new ProducerRecord<>(topic, "text"));
            producer.flush();
            seen.put("beside a bad one", messageOf(first));
            seen.put("bad", messageOf(second));
            seen.put("alone", of(producer.send(new ProducerRecord<>(topic, good))));
            seen.put("a tombstone", of(producer.send(new ProducerRecord<>(topic, "key", null))));
        }
    }

    private static String messageOf(Future<?> future) throws Exception {
        try {
            future.get();
            return "done";
        } catch (ExecutionException e) {
            return e.getCause().getClass().getSimpleName() + ": " + e.getCause().getMessage();
        }
    }

    // -- the consumer

    private void consume(String topic, String group) throws Exception {
        TopicPartition zero = new TopicPartition(topic, 0);
        TopicPartition one = new TopicPartition(topic, 1);
        try (Producer<String, String> producer = producer(Map.of(ProducerConfig.LINGER_MS_CONFIG, 50))) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int i = 0; i < 100; i++) {
                sent.add(producer.send(new ProducerRecord<>(topic, 0, 1000L + i * 10, null, "v" + i)));
            }
            for (Future<RecordMetadata> future : sent) {
                future.get();
            }
        }
        try (Consumer<String, String> consumer = consumer(group, Map.of())) {
            consumer.assign(List.of(zero, one));
            consumer.seek(zero, 37);
            consumer.seekToBeginning(List.of(one));
            List<ConsumerRecord<String, String>> records = poll(consumer, 63);
            seen.put("from the middle", List.of(records.get(0).value(), records.size(), records.get(62).offset()));
            seen.put("lag", consumer.currentLag(zero).orElse(-1));
            consumer.pause(List.of(zero));
            consumer.seek(zero, 0);
            seen.put("paused", consumer.poll(POLL).count());
            consumer.resume(List.of(zero));
            seen.put("resumed", poll(consumer, 100).get(0).value());
            consumer.seekToEnd(List.of(zero));
            seen.put("end", consumer.position(zero));
            seen.put("beginnings", plain(consumer.beginningOffsets(List.of(zero, one))));
            seen.put("ends", plain(consumer.endOffsets(List.of(zero, one))));
            Map<String, Object> times = new TreeMap<>();
            for (long time : List.of(0L, 1000L, 1001L, 1990L, 1991L)) {
                var found = consumer.offsetsForTimes(Map.of(zero, time)).get(zero);
                times.put(String.valueOf(time), found == null ? "none" : List.of(found.offset(), found.timestamp()));
            }
            seen.put("times", times);
            consumer.commitSync(Map.of(
                zero, new OffsetAndMetadata(42, Optional.of(0), "mine: ü"), one, new OffsetAndMetadata(0)));
            seen.put("committed", described(consumer.committed(Set.of(zero, one))));
            seen.put("never committed", consumer.committed(Set.of(new TopicPartition(topic, 2))).size());
            seen.put("topics", consumer.listTopics().containsKey(topic));
            seen.put("infos", consumer.partitionsFor(topic).stream()
                .map(info -> info.partition() + ":" + info.leader().id()).sorted().toList());
        }
        try (Consumer<String, String> consumer = consumer(group, Map.of())) {
            consumer.assign(List.of(zero));
            seen.put("goes on at", poll(consumer, 1).get(0).offset());
        }
        Map<String, Object> strict = Map.of(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "none");
        try (Consumer<String, String> consumer = consumer(group, strict)) {
            consumer.assign(List.of(zero));
            consumer.seek(zero, 1000);
            seen.put("out of range", of(() -> poll(consumer, 1)));
            consumer.assign(List.of(new TopicPartition(topic, 2)));
            seen.put("no offset", of(() -> poll(consumer, 1)));
        }
        Map<String, Object> limited = Map.of(
            ConsumerConfig.MAX_POLL_RECORDS_CONFIG, 7, ConsumerConfig.MAX_PARTITION_FETCH_BYTES_CONFIG, 100);
        try (Consumer<String, String> consumer = consumer(group, limited)) {
            consumer.assign(List.of(zero));
            consumer.seek(zero, 0);
            seen.put("small fetches", poll(consumer, 100).stream().map(ConsumerRecord::offset).toList().equals(range(0, 100)));
        }
    }

    private void subscribe(String prefix, String group) throws Exception {
        List<String> events = new ArrayList<>();
        ConsumerRebalanceListener listener = new ConsumerRebalanceListener() {
            @Override
            public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
                events.add("revoked " + partitions.size());
            }

            @Override
            public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                events.add("assigned " + partitions.size());
            }
        };
        Map<String, Object> config = Map.of(
            ConsumerConfig.METADATA_MAX_AGE_CONFIG, 300,
            ConsumerConfig.ALLOW_AUTO_CREATE_TOPICS_CONFIG, false,
            ConsumerConfig.HEARTBEAT_INTERVAL_MS_CONFIG, 200);
        try (Admin admin = admin(); Consumer<String, String> consumer = consumer(group, config)) {
            admin.createTopics(List.of(new NewTopic(prefix + "-1", 2, (short) 1))).all().get();
            consumer.subscribe(Pattern.compile(Pattern.quote(prefix) + "-.*"), listener);
            pollUntil(consumer, () -> consumer.assignment().size() == 2);
            admin.createTopics(List.of(new NewTopic(prefix + "-2", 3, (short) 1))).all().get();
            pollUntil(consumer, () -> consumer.assignment().size() == 5);
            admin.createPartitions(Map.of(prefix + "-1", NewPartitions.increaseTo(4))).all().get();
            pollUntil(consumer, () -> consumer.assignment().size() == 7);
            seen.put("events", events);
            seen.put("generation", consumer.groupMetadata().generationId());
            var description = admin.describeConsumerGroups(List.of(group)).all().get().get(group);
            var member = description.members().iterator().next();
            seen.put("member", consumer.groupMetadata().memberId().equals(member.consumerId()));
            seen.put("host", member.host());
            seen.put("assignor", description.partitionAssignor());
            seen.put("state", description.groupState().toString());
            seen.put("assigned", member.assignment().topicPartitions().size());
            consumer.enforceRebalance("because");
            int before = consumer.groupMetadata().generationId();
            pollUntil(consumer, () -> consumer.groupMetadata().generationId() > before);
            consumer.commitSync();
            admin.removeMembersFromConsumerGroup(group, new RemoveMembersFromConsumerGroupOptions()).all().get();
            seen.put("commit of the removed", of(() -> {
                consumer.commitSync(Map.of(new TopicPartition(prefix + "-1", 0), new OffsetAndMetadata(0)));
                return "done";
            }));
            pollUntil(consumer, () -> consumer.assignment().size() == 7);
            seen.put("returns", consumer.assignment().size());
            consumer.unsubscribe();
            admin.deleteTopics(List.of(prefix + "-1", prefix + "-2")).all().get();
            seen.put("group without members", of(admin.deleteConsumerGroups(List.of(group)).all()));
        }
    }

    // -- the administrator

    private void topics(String prefix) throws Exception {
        String name = prefix + "-topic";
        try (Admin admin = admin()) {
            NewTopic topic = new NewTopic(name, 5, (short) 1).configs(Map.of("retention.ms", "1000000"));
            CreateTopicsResult dry = admin.createTopics(List.of(topic), new CreateTopicsOptions().validateOnly(true));
            seen.put("validated", dry.numPartitions(name).get());
            seen.put("not yet", of(admin.describeTopics(List.of(name)).allTopicNames()));
            CreateTopicsResult created = admin.createTopics(List.of(topic));
            Uuid id = created.topicId(name).get();
            seen.put("created", List.of(created.numPartitions(name).get(), created.replicationFactor(name).get()));
            seen.put("created config", created.config(name).get().get("retention.ms").value());
            seen.put("created default", created.config(name).get().get("segment.ms").source().toString());
            NewTopic defaults = new NewTopic(prefix + "-defaults", Optional.empty(), Optional.empty());
            NewTopic placed = new NewTopic(prefix + "-placed", Map.of(0, List.of(1), 1, List.of(1)));
            NewTopic gap = new NewTopic(prefix + "-gap", Map.of(0, List.of(1), 2, List.of(1)));
            var several = admin.createTopics(List.of(defaults, placed, gap, topic)).values();
            seen.put("several", named(several, prefix));
            eventually(2, () -> partitions(admin, prefix + "-placed"));

            TopicDescription description = admin.describeTopics(List.of(name)).allTopicNames().get().get(name);
            seen.put("id", description.topicId().equals(id));
            seen.put("leaders", description.partitions().stream().map(info -> info.leader().id()).toList());
            seen.put("isr", description.partitions().get(0).isr().size());
            var paging = new DescribeTopicsOptions().partitionSizeLimitPerResponse(2).includeAuthorizedOperations(true);
            List<String> all = List.of(name, prefix + "-defaults", prefix + "-placed");
            var paged = admin.describeTopics(all, paging).allTopicNames().get();
            seen.put("paged", paged.values().stream().map(d -> d.partitions().size()).sorted().toList());
            seen.put("operations", paged.get(name).authorizedOperations().size());
            var ids = TopicCollection.ofTopicIds(List.of(id));
            seen.put("by id", admin.describeTopics(ids).allTopicIds().get().get(id).name().equals(name));
            var unknown = TopicCollection.ofTopicIds(List.of(Uuid.randomUuid()));
            seen.put("unknown id", of(admin.describeTopics(unknown).allTopicIds()));
            seen.put("listed", admin.listTopics().listings().get().stream()
                .filter(listing -> listing.topicId().equals(id)).map(listing -> listing.isInternal()).toList());
            seen.put("internal", admin.listTopics(new ListTopicsOptions().listInternal(true)).names().get()
                .containsAll(all));

            var grow = new CreatePartitionsOptions().validateOnly(true);
            var seven = Map.of(name, NewPartitions.increaseTo(7));
            seen.put("grow dry", of(admin.createPartitions(seven, grow).all()));
            seen.put("partitions dry", partitions(admin, name));
            seen.put("grow", of(admin.createPartitions(seven).all()));
            seen.put("partitions", eventually(7, () -> partitions(admin, name)));
            seen.put("grow again", of(admin.createPartitions(seven).all()));
            seen.put("shrink", of(admin.createPartitions(Map.of(name, NewPartitions.increaseTo(2))).all()));
            var wrong = Map.of(name, NewPartitions.increaseTo(8, List.of(List.of(9))));
            seen.put("grow wrongly", of(admin.createPartitions(wrong).all()));
            seen.put("grow nothing", of(admin.createPartitions(Map.of("no-" + name, NewPartitions.increaseTo(2))).all()));

            seen.put("delete by id", of(admin.deleteTopics(ids).all()));
            seen.put("delete again", of(admin.deleteTopics(ids).all()));
            seen.put("delete by name", of(admin.deleteTopics(all.subList(1, 3)).all()));
            seen.put("delete names again", of(admin.deleteTopics(all).all()));
            seen.put("left", eventually(List.of(),
                () -> admin.listTopics().names().get().stream().filter(n -> n.startsWith(prefix)).toList()));
            // Made anew, a topic is another.
            seen.put("another id", !admin.createTopics(List.of(topic)).topicId(name).get().equals(id));
            admin.deleteTopics(List.of(name)).all().get();
        }
    }

    private void configs(String topic) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        ConfigResource broker = new ConfigResource(ConfigResource.Type.BROKER, "1");
        try (Admin admin = admin()) {
            seen.put("set", alter(admin, resource, false, op("segment.ms", "100000", OpType.SET), op("cleanup.policy", "compact", OpType.SET)));
            seen.put("append", alter(admin, resource, false, op("cleanup.policy", "delete", OpType.APPEND)));
            seen.put("appended", eventually("compact,delete", () -> value(admin, resource, "cleanup.policy")));
            seen.put("subtract", alter(admin, resource, false, op("cleanup.policy", "compact", OpType.SUBTRACT)));
            seen.put("subtracted", eventually("delete", () -> value(admin, resource, "cleanup.policy")));
            seen.put("dry", alter(admin, resource, true, op("segment.ms", "200000", OpType.SET)));
            seen.put("unchanged", value(admin, resource, "segment.ms"));
            seen.put("delete", alter(admin, resource, false, op("segment.ms", null, OpType.DELETE)));
            seen.put("default", eventually("604800000", () -> value(admin, resource, "segment.ms")));
            seen.put("append to a number", alter(admin, resource, false, op("segment.ms", "1", OpType.APPEND)));
            seen.put("unknown key", alter(admin, resource, false, op("no.such.key", "1", OpType.SET)));
            seen.put("wrong value", alter(admin, resource, false, op("segment.ms", "-5", OpType.SET)));
            seen.put("unknown topic", alter(admin, new ConfigResource(ConfigResource.Type.TOPIC, "no-" + topic), false, op("segment.ms", "1", OpType.SET)));
            seen.put("read-only", alter(admin, broker, false, op("broker.rack", "r", OpType.SET)));
            seen.put("unknown broker", alter(admin, new ConfigResource(ConfigResource.Type.BROKER, "99"), false, op("log.retention.ms", "1", OpType.SET)));

            DescribeConfigsOptions full = new DescribeConfigsOptions().includeSynonyms(true).includeDocumentation(true);
            Config config = admin.describeConfigs(List.of(resource), full).all().get().get(resource);
            ConfigEntry entry = config.get("retention.ms");
            seen.put("documented", entry.documentation() != null && !entry.documentation().isEmpty());
            seen.put("type", entry.type().toString());
            seen.put("flags", List.of(entry.isDefault(), entry.isReadOnly(), entry.isSensitive()));
            seen.put("synonyms", config.get("max.message.bytes").synonyms().stream().map(s -> s.source() + ":" + s.name()).toList());
            Config node = admin.describeConfigs(List.of(broker)).all().get().get(broker);
            seen.put("node id", List.of(node.get("node.id").value(), node.get("node.id").isReadOnly(), node.get("node.id").source().toString()));
            seen.put("listener", node.get("listeners").source().toString());
            ConfigResource absent = new ConfigResource(ConfigResource.Type.TOPIC, "no-" + topic);
            seen.put("describe absent", of(admin.describeConfigs(List.of(absent)).all()));
            ConfigResource other = new ConfigResource(ConfigResource.Type.BROKER, "99");
            seen.put("describe other broker", of(() -> admin.describeConfigs(List.of(other),
                new DescribeConfigsOptions().timeoutMs(2000)).all().get()));
            seen.put("resources", admin.listConfigResources(Set.of(ConfigResource.Type.TOPIC), new ListConfigResourcesOptions())
                .all().get().stream().map(ConfigResource::name).collect(Collectors.toSet()).contains(topic));
        }
    }

    private void offsets(String topic) throws Exception {
        TopicPartition zero = new TopicPartition(topic, 0);
        TopicPartition one = new TopicPartition(topic, 1);
        try (Producer<String, String> producer = producer(Map.of()); Admin admin = admin()) {
            for (long time : List.of(5000L, 9000L, 7000L, 9000L, 8000L)) {
                producer.send(new ProducerRecord<>(topic, 0, time, null, "v")).get();
            }
            Map<String, OffsetSpec> specs = new LinkedHashMap<>();
            specs.put("earliest", OffsetSpec.earliest());
            specs.put("latest", OffsetSpec.latest());
            specs.put("max timestamp", OffsetSpec.maxTimestamp());
            specs.put("earliest local", OffsetSpec.earliestLocal());
            specs.put("latest tiered", OffsetSpec.latestTiered());
            specs.put("at 6000", OffsetSpec.forTimestamp(6000));
            specs.put("at 9001", OffsetSpec.forTimestamp(9001));
            for (var spec : specs.entrySet()) {
                var found = admin.listOffsets(Map.of(zero, spec.getValue(), one, spec.getValue()));
                List<Object> results = new ArrayList<>();
                for (TopicPartition partition : List.of(zero, one)) {
                    var result = found.partitionResult(partition).get();
                    results.add(List.of(result.offset(), result.timestamp()));
                }
                seen.put(spec.getKey(), results);
            }
            TopicPartition absent = new TopicPartition(topic, 9);
            seen.put("absent", of(() -> admin.listOffsets(Map.of(absent, OffsetSpec.latest()),
                new ListOffsetsOptions().timeoutMs(1500)).partitionResult(absent).get()));
            var deleted = admin.deleteRecords(Map.of(zero, RecordsToDelete.beforeOffset(3), one, RecordsToDelete.beforeOffset(0)));
            seen.put("deleted", List.of(deleted.lowWatermarks().get(zero).get().lowWatermark(), deleted.lowWatermarks().get(one).get().lowWatermark()));
            seen.put("beyond", of(admin.deleteRecords(Map.of(zero, RecordsToDelete.beforeOffset(9))).all()));
            seen.put("earliest after", admin.listOffsets(Map.of(zero, OffsetSpec.earliest())).partitionResult(zero).get().offset());
        }
        try (Consumer<String, String> consumer = consumer(null, Map.of())) {
            consumer.assign(List.of(zero));
            consumer.seek(zero, 0);
            seen.put("read from", poll(consumer, 2).get(0).offset());
        }
    }

    private void groups(String topic, String group) throws Exception {
        TopicPartition zero = new TopicPartition(topic, 0);
        TopicPartition one = new TopicPartition(topic, 1);
        try (Admin admin = admin()) {
            seen.put("alter", of(admin.alterConsumerGroupOffsets(group, Map.of(
                zero, new OffsetAndMetadata(7, Optional.of(3), "note"), one, new OffsetAndMetadata(9))).all()));
            seen.put("offsets", described(admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get()));
            seen.put("unknown topic", of(admin.alterConsumerGroupOffsets(group, Map.of(
                new TopicPartition("no-" + topic, 0), new OffsetAndMetadata(1))).all()));
            Map<String, ListConsumerGroupOffsetsSpec> specs = new HashMap<>();
            specs.put(group, new ListConsumerGroupOffsetsSpec().topicPartitions(List.of(zero)));
            specs.put("no-" + group, new ListConsumerGroupOffsetsSpec());
            var several = admin.listConsumerGroupOffsets(specs).all().get();
            seen.put("several", List.of(several.get(group).size(), several.get("no-" + group).size()));
            seen.put("listed", admin.listGroups().all().get().stream().filter(g -> g.groupId().equals(group))
                .map(g -> g.type().get() + " " + g.groupState().get() + " '" + g.protocol() + "'").toList());
            var description = admin.describeClassicGroups(List.of(group)).all().get().get(group);
            seen.put("described", description.state() + " " + description.members().size() + " " + description.coordinator().id());
            seen.put("describe absent", of(admin.describeConsumerGroups(List.of("no-" + group)).all()));
            seen.put("delete offsets", of(admin.deleteConsumerGroupOffsets(group, Set.of(zero)).all()));
            seen.put("delete absent offsets", of(admin.deleteConsumerGroupOffsets("no-" + group, Set.of(zero)).all()));
            try (Consumer<String, String> consumer = consumer(group, Map.of(ConsumerConfig.GROUP_INSTANCE_ID_CONFIG, "one"))) {
                consumer.subscribe(List.of(topic));
                // The broker's answer to the first fetch puts the position back.
                pollUntil(consumer, () -> consumer.assignment().size() == 2 && consumer.position(one) == 0);
                seen.put("positions", new TreeSet<>(List.of(consumer.position(zero), consumer.position(one))));
                seen.put("alter live", of(admin.alterConsumerGroupOffsets(group, Map.of(zero, new OffsetAndMetadata(1))).all()));
                seen.put("delete live offsets", of(admin.deleteConsumerGroupOffsets(group, Set.of(zero)).all()));
                seen.put("delete live", of(admin.deleteConsumerGroups(List.of(group)).all()));
                seen.put("instances", admin.describeConsumerGroups(List.of(group)).all().get().get(group).members().stream()
                    .map(m -> m.groupInstanceId().orElse("")).toList());
            }
            var gone = new RemoveMembersFromConsumerGroupOptions(List.of(new MemberToRemove("one")));
            seen.put("remove", of(admin.removeMembersFromConsumerGroup(group, gone).all()));
            var never = new RemoveMembersFromConsumerGroupOptions(List.of(new MemberToRemove("two")));
            seen.put("remove absent", of(admin.removeMembersFromConsumerGroup(group, never).all()));
            seen.put("delete", of(admin.deleteConsumerGroups(List.of(group)).all()));
            seen.put("delete again", of(admin.deleteConsumerGroups(List.of(group)).all()));
        }
    }

    private void cluster(String topic) throws Exception {
        try (Admin admin = admin()) {
            var cluster = admin.describeCluster(new DescribeClusterOptions().includeAuthorizedOperations(true));
            seen.put("nodes", cluster.nodes().get().stream().map(node -> node.id() + " " + node.host() + ":" + node.port()).toList());
            seen.put("cluster id", cluster.clusterId().get());
            seen.put("controller", cluster.controller().get().id());
            seen.put("operations", cluster.authorizedOperations().get().size());
            var quorum = admin.describeMetadataQuorum().quorumInfo().get();
            seen.put("quorum", List.of(quorum.leaderId(), quorum.voters().size(), quorum.observers().size(), quorum.nodes().size()));
            var features = admin.describeFeatures().featureMetadata().get();
            seen.put("finalized", features.finalizedFeatures().keySet().containsAll(Set.of("metadata.version", "group.version")));
            seen.put("supported", features.supportedFeatures().get("metadata.version").maxVersion());
            var directories = admin.describeLogDirs(List.of(1)).allDescriptions().get().get(1).values().iterator().next();
            seen.put("directory", List.of(directories.error() == null, directories.totalBytes().isPresent(), directories.usableBytes().isPresent(),
                directories.replicaInfos().containsKey(new TopicPartition(topic, 0))));
            var replica = new TopicPartitionReplica(topic, 0, 1);
            seen.put("replica lag", admin.describeReplicaLogDirs(List.of(replica)).values().get(replica).get().getCurrentReplicaOffsetLag());
        }
    }

    private void acls(String topic) throws Exception {
        try (Admin admin = admin()) {
            seen.put("acls", of(admin.describeAcls(AclBindingFilter.ANY).values()));
        }
    }

    // -- helpers

    private Admin admin() {
        return Admin.create(cluster);
    }

    private Producer<String, String> producer(Map<String, Object> extra) {
        Map<String, Object> config = new HashMap<>(extra);
        config.putAll(cluster);
        return new KafkaProducer<>(config, new StringSerializer(), new StringSerializer());
    }

    private Consumer<String, String> consumer(String group, Map<String, Object> extra) {
        Map<String, Object> config = new HashMap<>();
        config.putAll(cluster);
        config.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false);
        config.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        if (group != null) {
            config.put(ConsumerConfig.GROUP_ID_CONFIG, group);
        }
        config.putAll(extra);
        return new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer());
    }

    private static List<ConsumerRecord<String, String>> poll(Consumer<String, String> consumer, int count) {
        List<ConsumerRecord<String, String>> records = new ArrayList<>();
        pollUntil(consumer, () -> records.size() >= count, records);
        return records;
    }

    private static void pollUntil(Consumer<String, String> consumer, Condition condition) {
        pollUntil(consumer, condition, new ArrayList<>());
    }

    private static void pollUntil(Consumer<String, String> consumer, Condition condition, List<ConsumerRecord<String, String>> records) {
        long deadline = System.currentTimeMillis() + DEADLINE_MS;
        while (!condition.met()) {
            if (System.currentTimeMillis() > deadline) {
                throw new IllegalStateException("nothing came of it: " + consumer.assignment() + ", " + records.size() + " records");
            }
            consumer.poll(POLL).forEach(records::add);
        }
    }

    private interface Condition {
        boolean met();
    }

    private interface Action {
        Object run() throws Exception;
    }

    /** "done", or the exception's name. */
    private static String of(Action action) {
        try {
            action.run();
            return "done";
        } catch (ExecutionException e) {
            return e.getCause().getClass().getSimpleName();
        } catch (Exception e) {
            return e.getClass().getSimpleName();
        }
    }

    private static String of(Future<?> future) {
        return of(future::get);
    }

    private static Map<String, String> named(Map<String, ? extends Future<?>> futures, String prefix) {
        Map<String, String> outcomes = new TreeMap<>();
        futures.forEach((name, future) -> outcomes.put(name.substring(prefix.length() + 1), of(future)));
        return outcomes;
    }

    private static Map<String, Object> plain(Map<TopicPartition, Long> offsets) {
        Map<String, Object> result = new TreeMap<>();
        offsets.forEach((partition, offset) -> result.put(String.valueOf(partition.partition()), offset));
        return result;
    }

    private static Map<String, Object> described(Map<TopicPartition, OffsetAndMetadata> offsets) {
        Map<String, Object> result = new TreeMap<>();
        offsets.forEach((partition, offset) -> result.put(String.valueOf(partition.partition()),
            List.of(offset.offset(), offset.leaderEpoch().orElse(-1), offset.metadata())));
        return result;
    }

    private static List<Long> range(long start, long end) {
        return LongStream.range(start, end).boxed().toList();
    }

    private static int partitions(Admin admin, String topic) throws Exception {
        return admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size();
    }

    /** What is seen at last; of several nodes one may be a moment behind. */
    private static <T> T eventually(T expected, Callable<T> look) throws Exception {
        long deadline = System.nanoTime() + PATIENCE.toNanos();
        while (true) {
            T seen;
            try {
                seen = look.call();
            } catch (ExecutionException e) {
                if (System.nanoTime() > deadline) throw e;
                continue;
            }
            if (seen.equals(expected) || System.nanoTime() > deadline) return seen;
        }
    }

    private static AlterConfigOp op(String name, String value, OpType type) {
        return new AlterConfigOp(new ConfigEntry(name, value), type);
    }

    private static String alter(Admin admin, ConfigResource resource, boolean dry, AlterConfigOp... operations) {
        return of(() -> admin.incrementalAlterConfigs(Map.of(resource, List.of(operations)),
            new AlterConfigsOptions().validateOnly(dry).timeoutMs(3000)).all().get());
    }

    private static String value(Admin admin, ConfigResource resource, String name) throws Exception {
        return admin.describeConfigs(List.of(resource)).all().get().get(resource).get(name).value();
    }
}
