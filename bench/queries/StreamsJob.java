import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Properties;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.WindowedSerdes;

/**
 * The benchmark's jobs as a Kafka Streams application.
 *
 * <p>Arguments: the kind of the job; the topics of the stream, of the table or stream that it is
 * joined to, and of the results; then settings as key=value. Values are JSON objects, or for the kind
 * avro records of the schema in the system property "schema", whose id is in "schema.id".
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
        if (arguments[0].equals("avro")) {
            Serde<GenericRecord> avro = avro();
            builder.stream(source, Consumed.with(key, avro))
                .filter((k, v) -> (Integer) v.get("V") % 2 == 0)
                .to(sink, Produced.with(key, avro));
            run(builder, settings);
            return;
        }
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
            case "streams":
                KStream<String, ObjectNode> other = builder.stream(table, Consumed.with(key, value));
                stream.join(
                        other,
                        StreamsJob::both,
                        JoinWindows.ofTimeDifferenceAndGrace(WINDOW, GRACE),
                        StreamJoined.with(key, value, value))
                    .to(sink, Produced.with(key, value));
                break;
            case "sessions":
                stream.groupByKey()
                    .windowedBy(SessionWindows.ofInactivityGapAndGrace(WINDOW, GRACE))
                    .count()
                    .toStream()
                    .mapValues(count -> count == null ? null : MAPPER.createObjectNode().put("N", count))
                    .to(sink, Produced.with(WindowedSerdes.sessionWindowedSerdeFrom(String.class), value));
                break;
            default:
                throw new IllegalArgumentException(arguments[0]);
        }
        run(builder, settings);
    }

    private static void run(StreamsBuilder builder, Properties settings) {
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

    private static ObjectNode both(ObjectNode value, ObjectNode other) {
        ObjectNode result = MAPPER.createObjectNode();
        result.set("V", value.get("V"));
        result.set("W", other.get("V"));
        return result;
    }

    /** Confluent's format: a zero, the schema's id, the record. */
    private static Serde<GenericRecord> avro() {
        Schema schema = new Schema.Parser().parse(System.getProperty("schema"));
        byte[] head = ByteBuffer.allocate(5).put((byte) 0).putInt(Integer.getInteger("schema.id")).array();
        GenericDatumReader<GenericRecord> reader = new GenericDatumReader<>(schema);
        GenericDatumWriter<GenericRecord> writer = new GenericDatumWriter<>(schema);
        ThreadLocal<BinaryEncoder> encoders = new ThreadLocal<>();
        ThreadLocal<BinaryDecoder> decoders = new ThreadLocal<>();
        return Serdes.serdeFrom(
            (topic, record) -> {
                try {
                    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
                    bytes.write(head);
                    BinaryEncoder encoder = EncoderFactory.get().directBinaryEncoder(bytes, encoders.get());
                    encoders.set(encoder);
                    writer.write(record, encoder);
                    return bytes.toByteArray();
                } catch (IOException error) {
                    throw new IllegalStateException(error);
                }
            },
            (topic, bytes) -> {
                try {
                    BinaryDecoder decoder = DecoderFactory.get()
                        .binaryDecoder(bytes, head.length, bytes.length - head.length, decoders.get());
                    decoders.set(decoder);
                    return reader.read(null, decoder);
                } catch (IOException error) {
                    throw new IllegalStateException(error);
                }
            });
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
