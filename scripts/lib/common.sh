# shellcheck shell=bash
# Small functions that the scripts of this repository share. Source it; it runs nothing by itself.
#
# Whatever these functions tell the reader goes to stderr, so that stdout stays free for results.

# Tells the reader one line.
say() {
    printf '%s\n' "$*" >&2
}

# Tells the reader why the script cannot go on, and ends it.
die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

# Prints the root of this repository, with symbolic links resolved.
repo_root() {
    (cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
}

# Succeeds when this machine has an RDMA device, be it hardware or soft-RoCE.
have_rdma_device() {
    local device
    for device in /sys/class/infiniband/*; do
        [[ -e $device ]] && return 0
    done
    return 1
}

# Succeeds when this machine takes its packages from apt and we may install some.
can_install_packages() {
    [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null && command -v dpkg-query >/dev/null
}

# Installs packages without a question; apt's own words go to stderr, and only if something goes wrong.
apt_install() {
    local log status=0
    log=$(mktemp)
    if ! compgen -G '/var/lib/apt/lists/*_Packages*' >/dev/null; then
        apt-get -qq update >>"$log" 2>&1 || true
    fi
    if ! DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install "$@" >>"$log" 2>&1; then
        # The lists may be older than the mirror: fetch them anew and try once more.
        apt-get -qq update >>"$log" 2>&1 || true
        DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install "$@" >>"$log" 2>&1 || status=$?
    fi
    if [[ $status != 0 ]]; then
        cat "$log" >&2
    fi
    rm -f "$log"
    return "$status"
}

# need_packages PACKAGE...: sees to it that Debian or Ubuntu packages are installed. As root it installs what is
# missing; otherwise it prints the command that does, and ends the script.
need_packages() {
    local package missing=()
    if ! command -v dpkg-query >/dev/null; then
        say "This machine has no dpkg, so nobody checked for what Debian calls: $*"
        return 0
    fi
    for package in "$@"; do
        [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || missing+=("$package")
    done
    if [[ ${#missing[@]} == 0 ]]; then
        return 0
    fi
    if ! can_install_packages; then
        die "these packages are missing; please run: sudo apt-get install --no-install-recommends ${missing[*]}"
    fi
    say "Installing ${missing[*]}"
    apt_install "${missing[@]}" || die "apt-get could not install ${missing[*]}"
}

# is_jdk25 DIRECTORY: succeeds when a JDK 25, with its compiler, lies there.
is_jdk25() {
    [[ -x $1/bin/javac && -r $1/release ]] && grep -q '^JAVA_VERSION="25[."]' "$1/release"
}

# Prints the home of a JDK below /usr/lib/jvm that is a JDK 25, if there is one.
installed_jdk25() {
    local home
    for home in /usr/lib/jvm/*; do
        if is_jdk25 "$home"; then
            printf '%s\n' "$home"
            return 0
        fi
    done
    return 1
}

# Prints the home of a JDK 25: JAVA_HOME if it is one, else one below /usr/lib/jvm, else the distribution's package,
# which is installed when we may.
jdk25_home() {
    local package=openjdk-25-jdk-headless
    if [[ -n ${JAVA_HOME:-} ]] && is_jdk25 "$JAVA_HOME"; then
        printf '%s\n' "$JAVA_HOME"
        return 0
    fi
    if installed_jdk25; then
        return 0
    fi
    if can_install_packages; then
        say "Installing $package, for there is no JDK 25 in JAVA_HOME or below /usr/lib/jvm"
        if apt_install "$package" && installed_jdk25; then
            return 0
        fi
    fi
    die "no JDK 25 found. Install one (package $package where the distribution has it, or any other build of" \
        "OpenJDK 25) below /usr/lib/jvm, or let JAVA_HOME name it."
}
