package dev.verbena.bindings;

/**
 * Names and meanings of Linux {@code errno} values, as numbers alone help nobody. Good on any
 * thread and without any library.
 */
public final class Errno {
    /** Operation not permitted. */
    public static final int EPERM = 1;

    /** Nothing of that name, or nothing there. */
    public static final int ENOENT = 2;

    /** Interrupted by a signal. */
    public static final int EINTR = 4;

    /** Input or output failed. */
    public static final int EIO = 5;

    /** Not an open file descriptor. */
    public static final int EBADF = 9;

    /** Not now, try again. */
    public static final int EAGAIN = 11;

    /** Out of memory, or over a limit on it. */
    public static final int ENOMEM = 12;

    /** Permission denied. */
    public static final int EACCES = 13;

    /** Bad address. */
    public static final int EFAULT = 14;

    /** Still in use. */
    public static final int EBUSY = 16;

    /** No such device. */
    public static final int ENODEV = 19;

    /** Invalid argument. */
    public static final int EINVAL = 22;

    /** Too many open files in the process. */
    public static final int EMFILE = 24;

    /** No space, or no entry, left. */
    public static final int ENOSPC = 28;

    /** Not implemented. */
    public static final int ENOSYS = 38;

    /** Nothing there: an empty entry of a table. */
    public static final int ENODATA = 61;

    /** Value too large for its type. */
    public static final int EOVERFLOW = 75;

    /** Message too long. */
    public static final int EMSGSIZE = 90;

    /** Not supported by the device or its driver. */
    public static final int EOPNOTSUPP = 95;

    /** Timed out. */
    public static final int ETIMEDOUT = 110;

    /** One line for each value: the number, its name, what it means. */
    private static final String TABLE =
            """
            1 EPERM operation not permitted
            2 ENOENT nothing of that name, or nothing there
            3 ESRCH no such process
            4 EINTR interrupted by a signal
            5 EIO input or output failed
            6 ENXIO no such device or address
            7 E2BIG argument list too long
            8 ENOEXEC not an executable format
            9 EBADF not an open file descriptor
            10 ECHILD no child process
            11 EAGAIN not now, try again
            12 ENOMEM out of memory, or over a limit on it
            13 EACCES permission denied
            14 EFAULT bad address
            15 ENOTBLK not a block device
            16 EBUSY still in use
            17 EEXIST exists already
            18 EXDEV on another file system
            19 ENODEV no such device
            20 ENOTDIR not a directory
            21 EISDIR is a directory
            22 EINVAL invalid argument
            23 ENFILE too many open files in the system
            24 EMFILE too many open files in the process
            25 ENOTTY not a terminal, or an unknown ioctl
            26 ETXTBSY program file is running
            27 EFBIG file too large
            28 ENOSPC no space, or no entry, left
            29 ESPIPE cannot seek
            30 EROFS read-only file system
            31 EMLINK too many links
            32 EPIPE nobody reads the pipe
            33 EDOM argument out of domain
            34 ERANGE result out of range
            35 EDEADLK would deadlock
            36 ENAMETOOLONG name too long
            37 ENOLCK no locks left
            38 ENOSYS not implemented
            39 ENOTEMPTY directory not empty
            40 ELOOP too many symbolic links
            42 ENOMSG no message of that type
            43 EIDRM identifier removed
            44 ECHRNG channel number out of range
            45 EL2NSYNC level 2 not synchronised
            46 EL3HLT level 3 halted
            47 EL3RST level 3 reset
            48 ELNRNG link number out of range
            49 EUNATCH protocol driver not attached
            50 ENOCSI no CSI structure
            51 EL2HLT level 2 halted
            52 EBADE invalid exchange
            53 EBADR invalid request descriptor
            54 EXFULL exchange full
            55 ENOANO no anode
            56 EBADRQC invalid request code
            57 EBADSLT invalid slot
            59 EBFONT bad font file format
            60 ENOSTR not a stream
            61 ENODATA no data
            62 ETIME timer expired
            63 ENOSR no stream resources
            64 ENONET machine not on the network
            65 ENOPKG package not installed
            66 EREMOTE object is remote
            67 ENOLINK link severed
            68 EADV advertise error
            69 ESRMNT mount error
            70 ECOMM communication error on send
            71 EPROTO protocol error
            72 EMULTIHOP multihop attempted
            73 EDOTDOT file system specific error
            74 EBADMSG bad message
            75 EOVERFLOW value too large for its type
            76 ENOTUNIQ name not unique on the network
            77 EBADFD file descriptor in bad state
            78 EREMCHG remote address changed
            79 ELIBACC cannot access a shared library
            80 ELIBBAD shared library corrupted
            81 ELIBSCN section of a library corrupted
            82 ELIBMAX too many shared libraries
            83 ELIBEXEC cannot execute a shared library
            84 EILSEQ invalid byte sequence
            85 ERESTART call should be restarted
            86 ESTRPIPE streams pipe error
            87 EUSERS too many users
            88 ENOTSOCK not a socket
            89 EDESTADDRREQ destination address required
            90 EMSGSIZE message too long
            91 EPROTOTYPE wrong protocol for the socket
            92 ENOPROTOOPT protocol option not available
            93 EPROTONOSUPPORT protocol not supported
            94 ESOCKTNOSUPPORT socket type not supported
            95 EOPNOTSUPP not supported by the device or its driver
            96 EPFNOSUPPORT protocol family not supported
            97 EAFNOSUPPORT address family not supported
            98 EADDRINUSE address in use
            99 EADDRNOTAVAIL address not available
            100 ENETDOWN network is down
            101 ENETUNREACH network unreachable
            102 ENETRESET connection dropped by the network
            103 ECONNABORTED connection aborted
            104 ECONNRESET connection reset by the peer
            105 ENOBUFS no buffer space
            106 EISCONN connected already
            107 ENOTCONN not connected
            108 ESHUTDOWN endpoint was shut down
            109 ETOOMANYREFS too many references
            110 ETIMEDOUT timed out
            111 ECONNREFUSED connection refused
            112 EHOSTDOWN host is down
            113 EHOSTUNREACH no route to the host
            114 EALREADY in progress already
            115 EINPROGRESS now in progress
            116 ESTALE stale handle
            117 EUCLEAN structure needs cleaning
            118 ENOTNAM not a named type file
            119 ENAVAIL no semaphores available
            120 EISNAM is a named type file
            121 EREMOTEIO remote input or output failed
            122 EDQUOT quota exceeded
            123 ENOMEDIUM no medium
            124 EMEDIUMTYPE wrong medium type
            125 ECANCELED cancelled
            126 ENOKEY required key not available
            127 EKEYEXPIRED key expired
            128 EKEYREVOKED key revoked
            129 EKEYREJECTED key rejected
            130 EOWNERDEAD owner died
            131 ENOTRECOVERABLE state not recoverable
            132 ERFKILL blocked by the radio switch
            133 EHWPOISON memory page has a hardware error
            """;

    private static final int COUNT = 134;
    private static final String[] NAMES = new String[COUNT];
    private static final String[] TEXTS = new String[COUNT];

    static {
        TABLE.lines()
                .forEach(line -> {
                    String[] parts = line.split(" ", 3);
                    int error = Integer.parseInt(parts[0]);
                    NAMES[error] = parts[1];
                    TEXTS[error] = parts[2];
                });
    }

    private Errno() {}

    /**
     * Names a value.
     *
     * @param error an errno value, positive
     * @return its name, for instance {@code ENOMEM}, or {@code errno 4711} if it has none
     */
    public static String name(int error) {
        return isKnown(error) ? NAMES[error] : "errno " + error;
    }

    /**
     * Says what a value means.
     *
     * @param error an errno value, positive
     * @return a few words without a full stop, or {@code unknown error}
     */
    public static String text(int error) {
        return isKnown(error) ? TEXTS[error] : "unknown error";
    }

    /**
     * Names a value and gives its number, as error messages need both.
     *
     * @param error an errno value, positive
     * @return for instance {@code ENOMEM (12)}
     */
    public static String describe(int error) {
        return isKnown(error) ? NAMES[error] + " (" + error + ")" : "errno " + error;
    }

    private static boolean isKnown(int error) {
        return error > 0 && error < COUNT && NAMES[error] != null;
    }
}
