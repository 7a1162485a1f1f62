/* Compresses a kilobyte 50,000 times, each as a frame with a context of its own, and prints the sum of the sizes. */
#include <lz4frame.h>
#include <stdio.h>

static size_t frame(char *out, size_t room, const char *in, size_t size)
{
    LZ4F_cctx *context;
    size_t head, body, end;
    if (LZ4F_isError(LZ4F_createCompressionContext(&context, LZ4F_VERSION))) return 0;
    head = LZ4F_compressBegin(context, out, room, NULL);
    body = LZ4F_compressUpdate(context, out + head, room - head, in, size, NULL);
    end = LZ4F_compressEnd(context, out + head + body, room - head - body, NULL);
    LZ4F_freeCompressionContext(context);
    return LZ4F_isError(head) || LZ4F_isError(body) || LZ4F_isError(end) ? 0 : head + body + end;
}

int main(void)
{
    static char in[1024], out[4096];
    unsigned random = 12345;
    size_t total = 0;
    int i;
    for (i = 0; i < 1024; i++) {
        random = random * 1103515245u + 12345u;
        in[i] = "abcdefgh"[(random >> 16) & 7];
    }
    for (i = 0; i < 50000; i++) {
        size_t size;
        in[i & 1023] ^= 1;
        size = frame(out, sizeof out, in, sizeof in);
        if (size == 0) return 1;
        total += size;
    }
    printf("%zu\n", total);
    return 0;
}
