import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;

/**
 * Kafka's StandardAuthorizer, asked by lines of words with tabs between them:
 * `new everyone`, `acl type name pattern principal host operation permission`, `load`, and
 * `ask user host operation type name`, which is answered by two letters, y or n: for this resource,
 * and for some resource of the type. Run by test_authorizer_kafka.py.
 */
public class KafkaAuthorizer {
    private static StandardAuthorizer authorizer;
    private static Map<Uuid, StandardAcl> acls;

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split("\t", -1);
            switch (words[0]) {
                case "new":
                    authorizer = new StandardAuthorizer();
                    authorizer.configure(Map.of(
                        StandardAuthorizer.ALLOW_EVERYONE_IF_NO_ACL_IS_FOUND_CONFIG, words[1],
                        StandardAuthorizer.SUPER_USERS_CONFIG, "User:root"));
                    authorizer.withPluginMetrics(new PluginMetricsImpl(new Metrics(), Map.of()));
                    acls = new HashMap<>();
                    break;
                case "acl":
                    acls.put(Uuid.randomUuid(), new StandardAcl(
                        ResourceType.fromCode(Byte.parseByte(words[1])), words[2],
                        PatternType.fromCode(Byte.parseByte(words[3])), words[4], words[5],
                        AclOperation.fromCode(Byte.parseByte(words[6])),
                        AclPermissionType.fromCode(Byte.parseByte(words[7]))));
                    break;
                case "load":
                    authorizer.loadSnapshot(acls);
                    authorizer.completeInitialLoad();
                    break;
                default:
                    System.out.println("= " + ask(words));
            }
        }
    }

    private static String ask(String[] words) throws Exception {
        AuthorizableRequestContext context = new Context(words[1], words[2]);
        AclOperation operation = AclOperation.fromCode(Byte.parseByte(words[3]));
        ResourceType type = ResourceType.fromCode(Byte.parseByte(words[4]));
        ResourcePattern pattern = new ResourcePattern(type, words[5], PatternType.LITERAL);
        Action action = new Action(operation, pattern, 1, false, false);
        return told(authorizer.authorize(context, List.of(action)).get(0))
            + told(authorizer.authorizeByResourceType(context, operation, type));
    }

    private static String told(AuthorizationResult result) {
        return result == AuthorizationResult.ALLOWED ? "y" : "n";
    }

    private record Context(String user, String host) implements AuthorizableRequestContext {
        public String listenerName() {
            return "PLAINTEXT";
        }

        public SecurityProtocol securityProtocol() {
            return SecurityProtocol.PLAINTEXT;
        }

        public KafkaPrincipal principal() {
            return new KafkaPrincipal("User", user);
        }

        public InetAddress clientAddress() {
            try {
                return InetAddress.getByName(host);
            } catch (java.net.UnknownHostException e) {
                throw new IllegalArgumentException(e);
            }
        }

        public int requestType() {
            return 3;
        }

        public int requestVersion() {
            return 0;
        }

        public String clientId() {
            return "test";
        }

        public int correlationId() {
            return 1;
        }
    }
}
