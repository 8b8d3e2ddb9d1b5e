import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs the main methods of many command-line tools in one JVM, several at once, each as if it were
 * a process of its own: with its own standard streams, exit code and shutdown hooks. A run is told
 * from the others by its thread group, which every thread it starts is born into.
 *
 * <p>Reads one JSON object a line: {"id", "run": class, "args", "stdin"} starts a main method,
 * {"id", "stop": true} does what SIGTERM would. Writes {"id", "out"} and {"id", "err"} as text is
 * printed, and {"id", "exit"} at the end. Ends when standard input does.
 *
 * <p>Needs --add-opens java.base/java.lang=ALL-UNNAMED, to find the hooks.
 */
public final class ToolHost {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final PrintStream REPLIES = System.out;
    private static final PrintStream ERRORS = System.err;
    private static final InputStream COMMANDS = System.in;
    private static final Map<Integer, Run> RUNS = new ConcurrentHashMap<>();

    public static void main(String[] args) throws Exception {
        System.setOut(new PrintStream(new RoutedOutput("out"), true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(new RoutedOutput("err"), true, StandardCharsets.UTF_8));
        System.setIn(new RoutedInput());
        Exit.setExitProcedure(ToolHost::exit);
        Exit.setHaltProcedure(ToolHost::exit);
        Exit.setShutdownHookAdder((name, hook) -> Runtime.getRuntime().addShutdownHook(new Thread(hook, name)));
        BufferedReader commands = new BufferedReader(new InputStreamReader(COMMANDS, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            JsonNode command = JSON.readTree(line);
            int id = command.get("id").asInt();
            if (command.has("run")) {
                Run run = new Run(id, command);
                RUNS.put(id, run);
                run.start();
            } else if (RUNS.get(id) != null) {
                RUNS.get(id).terminate();
            }
        }
        Runtime.getRuntime().halt(0);
    }

    private static void exit(int code, String message) {
        Run run = current();
        if (run != null && run.exitCode == null) {
            run.exitCode = code;
            run.exitingThread = Thread.currentThread();
        }
        throw new ExitCalled();
    }

    private static Run current() {
        for (ThreadGroup group = Thread.currentThread().getThreadGroup(); group != null; group = group.getParent()) {
            if (group instanceof Run) {
                return (Run) group;
            }
        }
        return null;
    }

    private static void reply(int id, String kind, Object value) {
        ObjectNode message = JSON.createObjectNode().put("id", id);
        message.set(kind, JSON.valueToTree(value));
        synchronized (REPLIES) {
            REPLIES.println(message);
            REPLIES.flush();
        }
    }

    /** Thrown where a process would have ended; what the thread still prints then, nobody sees. */
    private static final class ExitCalled extends Error {
        private static final long serialVersionUID = 1L;

        ExitCalled() {
            super("the tool exits", null, false, false);
        }
    }

    /** One execution of a main method. */
    private static final class Run extends ThreadGroup {
        final int id;
        final InputStream stdin;
        volatile Integer exitCode;
        volatile Thread exitingThread;
        private final String className;
        private final String[] arguments;

        Run(int id, JsonNode command) {
            super("run-" + id);
            this.id = id;
            className = command.get("run").asText();
            arguments = JSON.convertValue(command.get("args"), String[].class);
            stdin = new ByteArrayInputStream(command.path("stdin").asText("").getBytes(StandardCharsets.UTF_8));
        }

        void start() {
            new Thread(this, this::main, "main-" + id).start();
        }

        private void main() {
            int failure = 0;
            try {
                Class.forName(className).getMethod("main", String[].class).invoke(null, (Object) arguments);
            } catch (InvocationTargetException e) {
                if (!(e.getCause() instanceof ExitCalled)) {
                    e.getCause().printStackTrace();
                    failure = 1;
                }
            } catch (ReflectiveOperationException e) {
                e.printStackTrace();
                failure = 1;
            }
            runHooks();
            RUNS.remove(id);
            reply(id, "exit", exitCode == null ? failure : exitCode);
        }

        void terminate() {
            new Thread(this, this::runHooks, "stop-" + id).start();
        }

        private void runHooks() {
            List<Thread> hooks = takeHooks();
            hooks.forEach(Thread::start);
            for (Thread hook : hooks) {
                try {
                    hook.join();
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            }
        }

        /** The shutdown hooks that this run registered, which then are registered no more. */
        @SuppressWarnings("unchecked")
        private List<Thread> takeHooks() {
            List<Thread> mine = new ArrayList<>();
            try {
                Class<?> registry = Class.forName("java.lang.ApplicationShutdownHooks");
                Field field = registry.getDeclaredField("hooks");
                field.setAccessible(true);
                synchronized (registry) {
                    for (Thread hook : ((Map<Thread, Thread>) field.get(null)).keySet()) {
                        if (hook.getThreadGroup() == this) {
                            mine.add(hook);
                        }
                    }
                }
            } catch (ReflectiveOperationException e) {
                throw new IllegalStateException("cannot reach the shutdown hooks", e);
            }
            mine.removeIf(hook -> !Runtime.getRuntime().removeShutdownHook(hook));
            return mine;
        }

        @Override
        public void uncaughtException(Thread thread, Throwable error) {
            if (!(error instanceof ExitCalled)) {
                System.err.println("uncaught in " + thread.getName());
                error.printStackTrace();
            }
        }
    }

    /** Sends what is printed to the run whose thread prints it. */
    private static final class RoutedOutput extends OutputStream {
        private final String kind;

        RoutedOutput(String kind) {
            this.kind = kind;
        }

        @Override
        public void write(int value) {
            write(new byte[] {(byte) value}, 0, 1);
        }

        @Override
        public void write(byte[] bytes, int start, int length) {
            Run run = current();
            if (run == null) {
                ERRORS.write(bytes, start, length);
            } else if (length > 0 && run.exitingThread != Thread.currentThread()) {
                reply(run.id, kind, new String(bytes, start, length, StandardCharsets.UTF_8));
            }
        }
    }

    /** Standard input of the run whose thread reads. */
    private static final class RoutedInput extends InputStream {
        @Override
        public int read() throws IOException {
            Run run = current();
            return run == null ? -1 : run.stdin.read();
        }

        @Override
        public int read(byte[] bytes, int start, int length) throws IOException {
            Run run = current();
            return run == null ? -1 : run.stdin.read(bytes, start, length);
        }
    }
}
