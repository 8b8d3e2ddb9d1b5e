import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;

/**
 * Reads lines of `class version hex`, lets Kafka decode the message, and answers with the hex that
 * Kafka encodes it to, or with `error` and the reason. Run by test_protocol_kafka.py.
 */
public class KafkaEcho {
    private static final String[] PACKAGES = {
        "org.apache.kafka.common.message.",
        "org.apache.kafka.common.metadata.",
        "org.apache.kafka.coordinator.group.generated.",
        "org.apache.kafka.coordinator.transaction.generated.",
        "org.apache.kafka.coordinator.share.generated.",
        "org.apache.kafka.raft.generated.",
        "org.apache.kafka.server.log.remote.metadata.storage.generated.",
        "org.apache.kafka.storage.internals.log.generated.",
        "org.apache.kafka.server.log.generated.",
    };
    private static final Map<String, Class<?>> FOUND = new HashMap<>();

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(answer(line.split(" ", -1)));
        }
    }

    private static String answer(String[] words) {
        try {
            short version = Short.parseShort(words[1]);
            ByteBuffer buffer = ByteBuffer.wrap(HexFormat.of().parseHex(words[2]));
            Message message =
                (Message) find(words[0]).getDeclaredConstructor().newInstance();
            message.read(new ByteBufferAccessor(buffer), version);
            if (buffer.hasRemaining()) {
                return "error " + buffer.remaining() + " bytes are left over";
            }
            ByteBuffer encoded = MessageUtil.toByteBufferAccessor(message, version).buffer();
            byte[] bytes = new byte[encoded.remaining()];
            encoded.get(bytes);
            return HexFormat.of().formatHex(bytes);
        } catch (Exception | StackOverflowError error) {
            return "error " + error.toString().replace('\n', ' ');
        }
    }

    private static Class<?> find(String name) throws ClassNotFoundException {
        Class<?> known = FOUND.get(name);
        for (int i = 0; known == null && i < PACKAGES.length; i++) {
            for (String suffix : new String[] {"", "Data"}) {
                try {
                    known = Class.forName(PACKAGES[i] + name + suffix);
                    break;
                } catch (ClassNotFoundException absent) {
                    // The next package may have it.
                }
            }
        }
        if (known == null) {
            throw new ClassNotFoundException(name);
        }
        FOUND.put(name, known);
        return known;
    }
}
