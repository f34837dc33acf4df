// tools/wheel.d/gcm_aesni.h: what is encrypted and decrypted in strides of eight blocks is what mbedTLS makes of shorter pieces, for which
// it uses its own code. Prints nothing and returns 0 if so.
#include <mbedtls/gcm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kMost = 20000, kStride = 128 };

static void fill(unsigned char* bytes, size_t count) {
  for (size_t i = 0; i < count; i++) bytes[i] = (unsigned char)(rand() >> 8);
}

// `piece` bytes at a time. A counter near its end, which has 32 bits, is set if `wraps`.
static void run(int mode, const unsigned char* key, unsigned bits, int wraps, size_t piece, size_t count,
                const unsigned char* in, unsigned char* out, unsigned char* tag) {
  static const unsigned char nonce[12] = {1, 2, 3}, header[20] = {4, 5};
  mbedtls_gcm_context context;
  mbedtls_gcm_init(&context);
  int failed = mbedtls_gcm_setkey(&context, MBEDTLS_CIPHER_ID_AES, key, bits) ||
               mbedtls_gcm_starts(&context, mode, nonce, sizeof nonce, header, sizeof header);
  if (wraps) memset(context.y + 12, 0xff, 3);
  for (size_t at = 0; at < count && !failed; at += piece)
    failed = mbedtls_gcm_update(&context, count - at < piece ? count - at : piece, in + at, out + at);
  if (failed || mbedtls_gcm_finish(&context, tag, 16)) {
    fprintf(stderr, "gcm.c: mbedTLS refuses\n");
    exit(1);
  }
  mbedtls_gcm_free(&context);
}

int main(void) {
  static unsigned char in[kMost], whole[kMost], pieces[kMost], back[kMost];
  fill(in, kMost);
  for (int i = 0; i < 3000; i++) {
    unsigned char key[32], tag[16], other_tag[16];
    fill(key, sizeof key);
    const unsigned bits = 128 + 64 * (unsigned)(i % 3);
    const size_t count = (size_t)rand() % (i % 4 == 0 ? kMost : 700);
    const int wraps = i % 5 == 0;
    run(MBEDTLS_GCM_ENCRYPT, key, bits, wraps, count + 1, count, in, whole, tag);
    run(MBEDTLS_GCM_ENCRYPT, key, bits, wraps, kStride - 16, count, in, pieces, other_tag);
    int same = memcmp(whole, pieces, count) == 0 && memcmp(tag, other_tag, sizeof tag) == 0;
    memcpy(back, whole, count);
    run(MBEDTLS_GCM_DECRYPT, key, bits, wraps, 16 * (size_t)(1 + rand() % 60), count, back, back, other_tag);
    same = same && memcmp(back, in, count) == 0 && memcmp(tag, other_tag, sizeof tag) == 0;
    if (!same) {
      fprintf(stderr, "gcm.c: %zu bytes with a key of %u bits are not the same\n", count, bits);
      return 1;
    }
  }
  return 0;
}
