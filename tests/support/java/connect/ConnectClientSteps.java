import java.util.Map;
import java.util.TreeMap;
import org.sourcelab.kafka.connect.apiclient.Configuration;
import org.sourcelab.kafka.connect.apiclient.KafkaConnectClient;
import org.sourcelab.kafka.connect.apiclient.request.dto.ConnectorPluginConfigDefinition;
import org.sourcelab.kafka.connect.apiclient.request.dto.NewConnectorDefinition;
import org.sourcelab.kafka.connect.apiclient.request.post.PostConnectorRestart;

/**
 * Each call of the client org.sourcelab:kafka-connect-client on a worker (first argument), about a
 * file source (its file is the second argument). Prints a line per call.
 */
public class ConnectClientSteps {
    private static final String CLASS = "org.apache.kafka.connect.file.FileStreamSourceConnector";

    private interface Call {
        Object make() throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        KafkaConnectClient client = new KafkaConnectClient(new Configuration(arguments[0]));
        String name = "by java/one";
        Map<String, String> settings = new TreeMap<>(Map.of(
            "connector.class", CLASS, "file", arguments[1], "topic", "by-java"));
        say("version", () -> client.getConnectServerVersion().getVersion());
        say("none", client::getConnectors);
        say("absent", () -> client.getConnector("absent"));
        say("add", () -> client.addConnector(
            NewConnectorDefinition.newBuilder().withName(name).withConfig(settings).build()).getName());
        say("again", () -> client.addConnector(
            NewConnectorDefinition.newBuilder().withName(name).withConfig(settings).build()));
        say("names", client::getConnectors);
        until(() -> client.getConnectorStatus(name).getTasks().size() == 1
            && client.getConnectorStatus(name).getTasks().get(0).getState().equals("RUNNING"));
        say("state", () -> client.getConnectorStatus(name).getConnector().get("state"));
        say("with info", () -> client.getConnectorsWithExpandedInfo()
            .getDefinitionForConnector(name).getType());
        say("with status", () -> client.getConnectorsWithExpandedStatus()
            .getStatusForConnector(name).getTasks().size());
        say("with all", () -> client.getConnectorsWithAllExpandedMetadata()
            .getDefinitionForConnector(name).getTasks().size());
        say("definition", () -> client.getConnector(name).getTasks());
        say("config", () -> client.getConnectorConfig(name).get("topic"));
        until(() -> client.getConnectorTopics(name).getTopics().size() == 1);
        say("topics", () -> client.getConnectorTopics(name).getTopics());
        say("reset topics", () -> client.resetConnectorTopics(name));
        say("tasks", () -> client.getConnectorTasks(name).iterator().next().getConfig().get("topic"));
        say("task", () -> client.getConnectorTaskStatus(name, 0).getState());
        say("no task", () -> client.getConnectorTaskStatus(name, 7));
        say("restart task", () -> client.restartConnectorTask(name, 0));
        say("restart", () -> client.restartConnector(name));
        say("restart all", () -> client.restartConnector(
            new PostConnectorRestart(name).withIncludeTasks(true).withOnlyFailed(false)));
        say("restart failed", () -> client.restartConnector(
            new PostConnectorRestart(name).withIncludeTasks(true).withOnlyFailed(true)));
        say("pause", () -> client.pauseConnector(name));
        until(() -> client.getConnectorStatus(name).getConnector().get("state").equals("PAUSED"));
        say("resume", () -> client.resumeConnector(name));
        settings.put("batch.size", "7");
        say("update", () -> client.updateConnectorConfig(name, settings).getConfig().get("batch.size"));
        settings.put("batch.size", "none");
        say("wrong", () -> client.updateConnectorConfig(name, settings));
        say("validate", () -> {
            var found = client.validateConnectorPluginConfig(ConnectorPluginConfigDefinition.newBuilder()
                .withName(CLASS).withConfig(settings).build());
            return found.getErrorCount() + " " + found.getName() + " " + found.getGroups().contains("Common")
                + " " + found.getConfigs().stream()
                    .filter(one -> one.getDefinition().getName().equals("batch.size"))
                    .map(one -> one.getValue().getErrors()).toList();
        });
        say("plugin", () -> client.getConnectorPlugins().stream()
            .filter(one -> one.getClassName().equals(CLASS)).map(one -> one.getType()).toList());
        say("delete", () -> client.deleteConnector(name));
        say("delete again", () -> client.deleteConnector(name));
        say("names", client::getConnectors);
    }

    private static void say(String what, Call call) throws Exception {
        Object found;
        try {
            found = call.make();
        } catch (RuntimeException error) {
            found = error.getClass().getSimpleName() + ": " + error.getMessage().lines().toList();
        }
        System.out.println(what + ": " + found);
    }

    private static void until(java.util.concurrent.Callable<Boolean> is) throws Exception {
        for (int i = 0; i < 600 && !is.call(); i++) {
            Thread.sleep(100);
        }
    }
}
