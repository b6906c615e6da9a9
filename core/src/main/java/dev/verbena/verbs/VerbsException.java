package dev.verbena.verbs;

import dev.verbena.bindings.Errno;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * A verb that failed. The message gives the verb, the errno by name, the arguments that matter, and
 * where one is known the likely cause and what to do: {@code ibv_reg_mr failed: ENOMEM (12):
 * length=1073741824; raise RLIMIT_MEMLOCK}.
 *
 * <p>A caller's mistake that can be seen before the verb is called is not told by this exception
 * but by {@link IllegalArgumentException} or {@link IllegalStateException}.
 */
public final class VerbsException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final String verb;
    private final int errno;
    private final String arguments;
    private final @Nullable String advice;

    /**
     * Describes a failed verb.
     *
     * @param verb the C name, such as {@code ibv_reg_mr}
     * @param errno the Linux errno, above 0, or 0 if the verb gave none
     * @param arguments the arguments that matter, or an empty string
     * @param advice likely cause and what to do, or null if nothing is known beyond the errno
     */
    public VerbsException(String verb, int errno, String arguments, @Nullable String advice) {
        super(message(verb, errno, arguments, advice));
        this.verb = verb;
        this.errno = errno;
        this.arguments = arguments;
        this.advice = advice;
    }

    /**
     * Describes a failed verb of which nothing is known beyond the errno.
     *
     * @param verb the C name
     * @param errno the Linux errno, above 0, or 0 if the verb gave none
     * @param arguments the arguments that matter, or an empty string
     */
    public VerbsException(String verb, int errno, String arguments) {
        this(verb, errno, arguments, null);
    }

    @Override
    public String getMessage() {
        return Objects.requireNonNull(super.getMessage());
    }

    /**
     * Names the verb that failed.
     *
     * @return its C name
     */
    public String verb() {
        return verb;
    }

    /**
     * Gives the error number.
     *
     * @return the Linux errno, or 0 if the verb gave none
     */
    public int errno() {
        return errno;
    }

    /**
     * Tells the same failure with more that matters, known to a caller further up.
     *
     * @param more further arguments
     * @return an exception with both, caused by this one
     */
    public VerbsException with(String more) {
        VerbsException fuller = new VerbsException(verb, errno, arguments + ", " + more, advice);
        fuller.initCause(this);
        return fuller;
    }

    private static String message(
            String verb, int errno, String arguments, @Nullable String advice) {
        StringBuilder text = new StringBuilder(verb).append(" failed");
        if (errno != 0) {
            text.append(": ").append(Errno.name(errno)).append(" (").append(errno).append(')');
        }
        if (!arguments.isEmpty()) {
            text.append(": ").append(arguments);
        }
        if (advice != null) {
            text.append("; ").append(advice);
        }
        return text.toString();
    }

    /** Throws unless the result of a verb that returns an errno is 0. */
    static void check(String verb, int result, String arguments) {
        if (result != 0) {
            throw new VerbsException(verb, Math.abs(result), arguments);
        }
    }
}
