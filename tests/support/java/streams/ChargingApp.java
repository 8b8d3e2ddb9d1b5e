import java.time.Duration;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;

/**
 * Energy of charging sessions by station, as a Kafka Streams application.
 *
 * <p>Sessions come by their id with "station,watt hours"; for each one the station's number of
 * sessions and energy so far go out. That takes a repartition topic and a store with a changelog.
 * Arguments: bootstrap servers, application id, input topic, output topic, then key=value settings.
 */
public final class ChargingApp {
    private ChargingApp() {
    }

    public static void main(String[] arguments) {
        Properties settings = new Properties();
        settings.putAll(Map.of(
            "bootstrap.servers", arguments[0],
            "application.id", arguments[1],
            "default.key.serde", Serdes.StringSerde.class.getName(),
            "default.value.serde", Serdes.StringSerde.class.getName(),
            "statestore.cache.max.bytes", "0",
            "consumer.auto.offset.reset", "earliest",
            "processing.guarantee", "exactly_once_v2"));
        for (int index = 4; index < arguments.length; index++) {
            String[] setting = arguments[index].split("=", 2);
            settings.put(setting[0], setting[1]);
        }
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(arguments[2])
            .map((session, value) -> {
                String[] parts = value.split(",");
                return KeyValue.pair(parts[0], parts[1]);
            })
            .groupByKey(Grouped.as("by-station"))
            .aggregate(() -> "0,0", (station, energy, total) -> add(total, energy), Materialized.as("energy"))
            .toStream()
            .to(arguments[3]);
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.setStateListener((now, before) -> say("state " + now));
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            streams.close(Duration.ofSeconds(20));
            say("closed");
        }));
        streams.start();
    }

    private static String add(String total, String energy) {
        String[] parts = total.split(",");
        return (Long.parseLong(parts[0]) + 1) + "," + (Long.parseLong(parts[1]) + Long.parseLong(energy));
    }

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
