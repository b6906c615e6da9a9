/* What a C program would write to gather or scatter slices. */
#include <stdint.h>
#include <string.h>

void peer_copy(char *to, uint64_t to_stride, const char *from, uint64_t from_stride, uint64_t bytes, uint64_t slices)
{
    for (uint64_t i = 0; i < slices; i++)
        memcpy(to + i * to_stride, from + i * from_stride, bytes);
}
