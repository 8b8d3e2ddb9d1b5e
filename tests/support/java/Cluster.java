import java.io.IOException;
import java.io.Reader;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;

/** What clients need to reach a cluster. */
final class Cluster {
    private Cluster() {
    }

    /** Of bootstrap servers, or of the path of a properties file that names them and a login. */
    static Map<String, Object> settings(String serversOrFile) {
        if (!serversOrFile.startsWith("/")) {
            return Map.of("bootstrap.servers", serversOrFile);
        }
        Properties found = new Properties();
        try (Reader reader = Files.newBufferedReader(Path.of(serversOrFile))) {
            found.load(reader);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        Map<String, Object> settings = new HashMap<>();
        found.forEach((name, value) -> settings.put((String) name, value));
        return settings;
    }

    /** The same, with more. */
    static Map<String, Object> with(Map<String, Object> cluster, Map<String, Object> more) {
        Map<String, Object> all = new HashMap<>(cluster);
        all.putAll(more);
        return all;
    }
}
