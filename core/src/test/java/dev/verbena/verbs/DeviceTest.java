package dev.verbena.verbs;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * Marks tests that need an RDMA device. They are left out by their tag where there is none; who
 * runs them by that tag all the same is told so by a failure, as a skipped test looks like a test
 * that passed.
 *
 * <p>The time limit is a guard against hanging and nothing that a test relies on. A test that hangs
 * in native code cannot be interrupted, so each runs on a thread of its own.
 */
@Target({ElementType.TYPE, ElementType.METHOD})
@Retention(RetentionPolicy.RUNTIME)
@Tag("device")
@Timeout(value = 180, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@ExtendWith(DeviceTest.Required.class)
@SuppressWarnings("exports") // of the test framework, which the module does not require
public @interface DeviceTest {
    /** Fails a test where there is no device. */
    final class Required implements BeforeEachCallback {
        /** Made by the test framework. */
        public Required() {}

        @Override
        public void beforeEach(ExtensionContext context) {
            names();
        }

        /** The names of the devices there are, of which there must be one. */
        static List<String> names() {
            List<String> names = Device.names();
            if (names.isEmpty()) {
                throw new AssertionError(
                        "this test needs an RDMA device and the machine has none: leave the tag"
                                + " 'device' out, or run it by scripts/rxe-guest");
            }
            return names;
        }
    }
}
