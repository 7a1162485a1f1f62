import java.lang.management.ManagementFactory;
import java.net.URI;
import java.net.URL;
import java.nio.file.*;
import java.util.*;
import javax.management.ObjectName;

/** Which code this process has loaded, as the virtual machine lists it. */
final class ScrupleCode {
    /** The loaders whose classes are part of the runtime, or made by it. */
    private static final List<String> OF_RUNTIME = List.of("<bootstrap>",
        "jdk.internal.loader.ClassLoaders$PlatformClassLoader", "jdk.internal.reflect.DelegatingClassLoader");
    private static final String OF_PROGRAM = "jdk.internal.loader.ClassLoaders$AppClassLoader";

    private final Set<String> files = new TreeSet<>();

    /** Returns the reply to “loaded”. An error says what is loaded and unknown. */
    static Map<String, Object> reply() {
        try {
            ScrupleCode code = new ScrupleCode();
            code.addMappedFiles();
            code.addClasses();
            List<String> options = ManagementFactory.getRuntimeMXBean().getInputArguments();
            return ScrupleLines.object("loaded", new ArrayList<>(code.files), "generated", options);
        } catch (Exception e) {
            return ScrupleLines.object("error", String.valueOf(e.getMessage()), "kind", "unsupported");
        }
    }

    /** Adds the files that are mapped as executable. */
    private void addMappedFiles() throws Exception {
        for (String line : Files.readAllLines(Path.of("/proc/self/maps"))) {
            int path = line.indexOf('/');
            if (path >= 0 && line.split(" ", 3)[1].contains("x")) {
                files.add(line.substring(path));
            }
        }
    }

    /** Adds the files of the program's classes, if its usual loader has loaded them all. */
    private void addClasses() throws Exception {
        ObjectName commands = new ObjectName("com.sun.management:type=DiagnosticCommand");
        Object[] words = {new String[] {"show-classes"}};
        String tree = (String) ManagementFactory.getPlatformMBeanServer()
            .invoke(commands, "vmClassloaders", words, new String[] {String[].class.getName()});
        boolean ofProgram = false;
        // Regular expressions would take a tenth of a second, because the list is long and their code is not compiled.
        for (String line : tree.split("\n")) {
            int loader = line.indexOf("+-- ");
            if (loader >= 0) {
                ofProgram = isOfProgram(line.substring(loader + 4));
            } else if (ofProgram) {
                String name = line.substring(line.lastIndexOf(' ') + 1);
                if (!name.isEmpty() && !name.equals("|") && !name.endsWith(")") && !name.startsWith("[")) {
                    addClass(name);
                }
            }
        }
        if (files.stream().noneMatch(file -> file.endsWith("ScrupleBench.class") || file.endsWith(".jar"))) {
            throw new IllegalStateException("the virtual machine does not list the classes of the program");
        }
    }

    /** Whether a loader, as the machine lists it, is that of the program. An error says that it is of neither kind. */
    private static boolean isOfProgram(String listed) {
        int name = listed.lastIndexOf("\", ");
        int more = listed.indexOf(" (+");
        String loader = listed.substring(name < 0 ? 0 : name + 3, more < 0 ? listed.length() : more);
        if (!loader.equals(OF_PROGRAM) && !OF_RUNTIME.contains(loader)) {
            throw new IllegalStateException("classes were loaded by ".concat(loader));
        }
        return loader.equals(OF_PROGRAM);
    }

    private void addClass(String name) throws Exception {
        // The runtime makes the classes of lambda expressions and of proxies out of other classes.
        if (name.contains("$$Lambda") || name.contains("LambdaForm$") || name.matches(".*\\$Proxy\\d+")) {
            return;
        }
        URL found = ClassLoader.getSystemResource(name.replace('.', '/').concat(".class"));
        if (found == null) {
            throw new IllegalStateException("no file holds the class " + name);
        }
        if (found.getProtocol().equals("jar")) {
            found = new URI(found.getPath().replaceFirst("!/.*", "")).toURL();
        }
        if (!found.getProtocol().equals("jrt")) {
            files.add(Path.of(found.toURI()).toString());
        }
    }
}
