/** A project that uses Verbena. */
module com.example.consumer {
    requires dev.verbena.core;
}
