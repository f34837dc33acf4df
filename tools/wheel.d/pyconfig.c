// That pyconfig.h is right about a machine: compiled by tools/wheel for the one that it builds for.
#include <Python.h>
#include <pthread.h>

#define SAME(type, bytes) _Static_assert(sizeof(type) == (bytes), #type)
SAME(short, SIZEOF_SHORT);
SAME(int, SIZEOF_INT);
SAME(long, SIZEOF_LONG);
SAME(long long, SIZEOF_LONG_LONG);
SAME(float, SIZEOF_FLOAT);
SAME(double, SIZEOF_DOUBLE);
SAME(void*, SIZEOF_VOID_P);
SAME(_Bool, SIZEOF__BOOL);
SAME(wchar_t, SIZEOF_WCHAR_T);
SAME(size_t, SIZEOF_SIZE_T);
SAME(off_t, SIZEOF_OFF_T);
SAME(time_t, SIZEOF_TIME_T);
SAME(pid_t, SIZEOF_PID_T);
SAME(pthread_t, SIZEOF_PTHREAD_T);
_Static_assert(_Alignof(long) == ALIGNOF_LONG && _Alignof(size_t) == ALIGNOF_SIZE_T, "alignment");
#if defined(WORDS_BIGENDIAN) != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
#error "byte order"
#endif
