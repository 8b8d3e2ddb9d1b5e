import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.CleanerStats;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * Cleans one log after another with Kafka's own cleaner, in one round each.
 *
 * A line in: directory, first dirty offset, first offset that is left alone, time in ms,
 * delete.retention.ms, segment size in bytes, keys that the map may hold. A line out: the offset
 * after the last that counts as clean.
 */
public class KafkaCleaner {
    private static final int ENTRY_BYTES = 24;

    public static void main(String[] arguments) throws Exception {
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String answer;
            try {
                answer = Long.toString(clean(line.split(" "), scheduler));
            } catch (Throwable failure) {
                failure.printStackTrace();
                answer = "error " + failure;
            }
            System.out.println(answer);
        }
        scheduler.shutdown();
    }

    private static long clean(String[] words, KafkaScheduler scheduler) throws Exception {
        File directory = new File(words[0]);
        long dirty = Long.parseLong(words[1]);
        long uncleanable = Long.parseLong(words[2]);
        long nowMs = Long.parseLong(words[3]);
        int keysMax = Integer.parseInt(words[6]);
        Map<String, Object> values = new HashMap<>();
        values.put("cleanup.policy", "compact");
        values.put("delete.retention.ms", words[4]);
        values.put("internal.segment.bytes", words[5]);
        UnifiedLog log = UnifiedLog.create(directory, new LogConfig(values), 0L, 0L, scheduler,
            new BrokerTopicStats(), Time.SYSTEM, 900_000,
            new ProducerStateManagerConfig(86_400_000, false), 600_000,
            new LogDirFailureChannel(1), true, Optional.<Uuid>empty());
        log.updateHighWatermark(log.logEndOffset());
        Throttler throttler = new Throttler(Double.MAX_VALUE, 300, "io", "bytes", Time.SYSTEM);
        Cleaner cleaner = new Cleaner(0, new SkimpyOffsetMap(keysMax * ENTRY_BYTES, "MD5"),
            65536, 65536, 1.0, throttler, Time.SYSTEM, partition -> { });
        LogToClean chosen = new LogToClean(log, dirty, uncleanable, false);
        Map.Entry<Long, CleanerStats> cleaned = cleaner.doClean(chosen, nowMs);
        log.flush(true);
        log.close();
        return cleaned.getKey();
    }
}
