package dev.verbena.verbs;

/**
 * Something that happened to a device outside of any work request.
 *
 * <p>Source: {@code ibv_get_async_event(3)}.
 *
 * @param type the verbs' number of the event, {@code enum ibv_event_type}
 * @param name the verbs' words for it, such as "port active"
 * @param subject what it happened to: {@link Subject#DEVICE}, or the kind of object
 * @param number the queue pair's number or the port's; 0 where it has no meaning
 */
public record AsyncEvent(int type, String name, Subject subject, int number) {
    /** What an event is about. */
    public enum Subject {
        /** A queue pair, by its number. */
        QUEUE_PAIR,
        /** A completion queue. */
        COMPLETION_QUEUE,
        /** A port, by its number. */
        PORT,
        /** Some other object. */
        OTHER,
        /** The whole device, which is lost. */
        DEVICE
    }

    /**
     * Says whether the event means that transfers will fail.
     *
     * @return true for a failed device, queue or port
     */
    public boolean isFailure() {
        return switch (subject) {
            case DEVICE, COMPLETION_QUEUE -> true;
            case QUEUE_PAIR, PORT -> name.contains("error") || name.contains("fatal");
            case OTHER -> false;
        };
    }
}
