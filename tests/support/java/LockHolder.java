import java.io.File;
import org.apache.kafka.server.util.FileLock;

/** Tries the lock that Kafka takes on a log directory; says so, and holds it until input ends. */
public class LockHolder {
    public static void main(String[] arguments) throws Exception {
        FileLock lock = new FileLock(new File(arguments[0]));
        System.out.println(lock.tryLock() ? "taken" : "refused");
        System.in.read();
        lock.destroy();
    }
}
