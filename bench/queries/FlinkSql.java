import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ExecutionException;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.TableResult;

/**
 * Runs Flink SQL in this process, a statement per line of standard input.
 *
 * <p>Arguments are settings as key=value; a line "set key=value" changes one. The line "end" cancels
 * the job that the last INSERT began; "ended" is printed when it no longer runs. The process ends if
 * a job fails.
 */
public final class FlinkSql {
    private static volatile boolean isEnding;

    private FlinkSql() {
    }

    public static void main(String[] arguments) throws Exception {
        Configuration settings = new Configuration();
        for (String argument : arguments) {
            String[] setting = argument.split("=", 2);
            settings.setString(setting[0], setting[1]);
        }
        TableEnvironment tables = TableEnvironment.create(
            EnvironmentSettings.newInstance().inStreamingMode().withConfiguration(settings).build());
        BufferedReader lines =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        JobClient job = null;
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            if (line.equals("end")) {
                if (job != null) {
                    end(job);
                }
                job = null;
                System.out.println("ended");
            } else if (line.startsWith("set ")) {
                String[] setting = line.substring("set ".length()).split("=", 2);
                tables.getConfig().set(setting[0], setting[1]);
            } else {
                TableResult result = tables.executeSql(line);
                if (result.getJobClient().isPresent()) {
                    job = result.getJobClient().get();
                    watch(job);
                }
            }
        }
        System.exit(0);
    }

    private static void watch(JobClient job) {
        isEnding = false;
        job.getJobExecutionResult().whenComplete((result, error) -> {
            if (!isEnding) {
                if (error != null) {
                    error.printStackTrace();
                }
                System.exit(1);
            }
        });
    }

    private static void end(JobClient job) throws InterruptedException, ExecutionException {
        isEnding = true;
        job.cancel().get();
        job.getJobExecutionResult().handle((result, error) -> null).get();
    }
}
