import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.WindowedSerdes;

/**
 * The benchmark's jobs as a Kafka Streams application.
 *
 * <p>Arguments: filter, count or join; the topics of the stream, the table and the results; then
 * settings as key=value. Values are JSON objects.
 */
public final class StreamsJob {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final Duration WINDOW = Duration.ofSeconds(10);
    private static final Duration GRACE = Duration.ofHours(24);

    private StreamsJob() {
    }

    public static void main(String[] arguments) {
        String source = arguments[1];
        String table = arguments[2];
        String sink = arguments[3];
        Properties settings = new Properties();
        for (int index = 4; index < arguments.length; index++) {
            String[] setting = arguments[index].split("=", 2);
            settings.put(setting[0], setting[1]);
        }
        Serde<String> key = Serdes.String();
        Serde<ObjectNode> value = json();
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, ObjectNode> stream = builder.stream(source, Consumed.with(key, value));
        switch (arguments[0]) {
            case "filter":
                stream.filter((k, v) -> v.get("V").asInt() % 2 == 0).to(sink, Produced.with(key, value));
                break;
            case "count":
                stream.groupByKey()
                    .windowedBy(TimeWindows.ofSizeAndGrace(WINDOW, GRACE))
                    .count()
                    .toStream()
                    .mapValues(count -> MAPPER.createObjectNode().put("N", count))
                    .to(sink, Produced.with(WindowedSerdes.timeWindowedSerdeFrom(String.class, WINDOW.toMillis()), value));
                break;
            case "join":
                KTable<String, ObjectNode> names = builder.table(table, Consumed.with(key, value));
                stream.join(names, StreamsJob::named).to(sink, Produced.with(key, value));
                break;
            default:
                throw new IllegalArgumentException(arguments[0]);
        }
        settings.put("default.key.serde", Serdes.StringSerde.class.getName());
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(Duration.ofSeconds(20))));
        streams.start();
    }

    private static ObjectNode named(ObjectNode value, ObjectNode row) {
        ObjectNode result = MAPPER.createObjectNode();
        result.set("V", value.get("V"));
        result.set("NAME", row.get("NAME"));
        return result;
    }

    private static Serde<ObjectNode> json() {
        return Serdes.serdeFrom(
            (topic, node) -> {
                try {
                    return node == null ? null : MAPPER.writeValueAsBytes(node);
                } catch (IOException error) {
                    throw new IllegalStateException(error);
                }
            },
            (topic, bytes) -> {
                try {
                    return bytes == null ? null : (ObjectNode) MAPPER.readTree(bytes);
                } catch (IOException error) {
                    throw new IllegalStateException(error);
                }
            });
    }
}
