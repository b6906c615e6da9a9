"""The numpy way to plan: what a KV sender in Python does with page indices before it calls its transfer engine.

"lists" is the formulation of SGLang's send_kvcache: indices grouped by diff and split, then a loop over layers that
builds a list of blocks for each. "vectorised" is what numpy can do at best: no loop at all, arrays instead of lists.

Reads a request a line from standard input and answers on standard output, so that it can take turns with the Java side
in one run:

  case POOLS PAGE_BYTES POOL_BYTES PREFILL_BASE DECODE_BASE PAGES RUN_PAGES    sets the case up; answers "ready"
  lists | vectorised              plans once; answers "NANOSECONDS BLOCKS CHECKSUM"
"""

import sys
import time

import numpy as np

MASK = (1 << 64) - 1


def pages_in_runs(count, run_pages, gap):
    """Page indices that are contiguous in runs, with a gap between one run and the next."""
    index = np.arange(count, dtype=np.int32)
    return index + (index // run_pages) * gap


def breaks(src, dst):
    return np.where((np.diff(src) != 1) | (np.diff(dst) != 1))[0] + 1


def group_contiguous(src, dst):
    at = breaks(src, dst)
    src_groups = [group.tolist() for group in np.split(src, at)]
    dst_groups = [group.tolist() for group in np.split(dst, at)]
    return src_groups, dst_groups


def plan_lists(src_bases, dst_bases, page_bytes, src, dst):
    src_groups, dst_groups = group_contiguous(src, dst)
    blocks = []
    for src_base, dst_base in zip(src_bases, dst_bases):
        for src_group, dst_group in zip(src_groups, dst_groups):
            src_address = src_base + int(src_group[0]) * page_bytes
            dst_address = dst_base + int(dst_group[0]) * page_bytes
            blocks.append((src_address, dst_address, page_bytes * len(src_group)))
    src_addresses, dst_addresses, lengths = zip(*blocks)
    return list(src_addresses), list(dst_addresses), list(lengths)


def plan_vectorised(src_bases, dst_bases, page_bytes, src, dst):
    starts = np.concatenate(([0], breaks(src, dst)))
    lengths = np.diff(starts, append=src.size) * page_bytes
    src_addresses = np.add.outer(np.array(src_bases), src[starts].astype(np.int64) * page_bytes)
    dst_addresses = np.add.outer(np.array(dst_bases), dst[starts].astype(np.int64) * page_bytes)
    return src_addresses.ravel(), dst_addresses.ravel(), np.tile(lengths, len(src_bases))


PLANS = {"lists": plan_lists, "vectorised": plan_vectorised}


def checksum(blocks):
    """A sum that does not depend on the order of the blocks."""
    src, dst, lengths = (sum(map(int, part)) for part in blocks)
    return (src * 3 + dst * 5 + lengths * 7) & MASK


def case(pools, page_bytes, pool_bytes, src_base, dst_base, pages, run_pages):
    return (
        [src_base + pool * pool_bytes for pool in range(pools)],
        [dst_base + pool * pool_bytes for pool in range(pools)],
        page_bytes,
        pages_in_runs(pages, run_pages, 1),
        pages_in_runs(pages, run_pages, 2),
    )


def main():
    arguments = ()
    checked = {}
    for line in sys.stdin:
        words = line.split()
        if words[0] == "case":
            arguments = case(*map(int, words[1:]))
            checked = {}
            print("ready", flush=True)
            continue
        start = time.perf_counter_ns()
        blocks = PLANS[words[0]](*arguments)
        nanos = time.perf_counter_ns() - start
        # The sum of a million blocks takes longer than the plan, which is the same each time.
        if words[0] not in checked:
            checked[words[0]] = checksum(blocks)
        print(nanos, len(blocks[0]), checked[words[0]], flush=True)


main()
