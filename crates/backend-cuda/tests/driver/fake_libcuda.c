/* A driver with one GPU of 64 MiB whose kernels do nothing. FAKE_CUDA says what is wrong with it. Needs no header. */

typedef unsigned long size;
typedef unsigned long long address;

char *getenv(const char *);
void *calloc(size, size);
void free(void *);
void *memcpy(void *, const void *, size);
char *strcpy(char *, const char *);
int strcmp(const char *, const char *);

enum { TOTAL = 64 << 20, HEADER = 256, OUT_OF_MEMORY = 2, INVALID_VALUE = 1, INVALID_PTX = 218, ILLEGAL_ADDRESS = 700, NOT_READY = 600 };

static size used;
static int launched;

static int is(const char *mode) {
    const char *set = getenv("FAKE_CUDA");
    return set && !strcmp(set, mode);
}

int cuGetErrorString(int error, const char **text) {
    *text = error == 100 ? "no CUDA-capable device is detected" : "something went wrong";
    return 0;
}
int cuInit(unsigned flags) { return is("no-device") ? 100 : 0; }
int cuDeviceGetCount(int *n) { return *n = !is("hidden"), 0; }
int cuDeviceGet(int *device, int i) { return *device = i, 0; }
int cuDeviceGetName(char *name, int len, int device) { return strcpy(name, "Fake GPU"), 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    *value = attribute == 75 ? (is("old") ? 7 : 8) : attribute == 76 ? 6 : attribute == 16 ? 12 : attribute == 97 ? 101376 : -1;
    return 0;
}
int cuDeviceTotalMem_v2(size *bytes, int device) { return *bytes = TOTAL, 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) { return *context = &used, 0; }
int cuCtxSetCurrent(void *context) { return context == &used ? 0 : INVALID_VALUE; }
int cuStreamCreate(void **stream, unsigned flags) { return *stream = &launched, 0; }
int cuStreamSynchronize(void *stream) { return is("fault") && launched ? ILLEGAL_ADDRESS : 0; }
int cuStreamWaitEvent(void *stream, void *event, unsigned flags) { return event ? 0 : INVALID_VALUE; }
/* An event is done when it is asked for the second time. */
int cuEventCreate(void **event, unsigned flags) { return *event = calloc(1, sizeof(int)), flags == 2 ? 0 : INVALID_VALUE; }
int cuEventRecord(void *event, void *stream) { return *(int *)event = 1, 0; }
int cuEventQuery(void *event) { return (*(int *)event)-- > 0 ? NOT_READY : 0; }
int cuEventDestroy_v2(void *event) { return free(event), 0; }
int cuMemHostAlloc(void **at, size bytes, unsigned flags) { return *at = calloc(1, bytes), 0; }
int cuMemFreeHost(void *at) { return free(at), 0; }
int cuModuleLoadDataEx(void **module, const void *text, unsigned n, int *options, void **values) {
    if (is("refuse")) {
        strcpy(values[0], "ptxas application ptx input, line 7; error : Unknown symbol 'x'\n");
        return INVALID_PTX;
    }
    return *module = &launched, 0;
}
int cuModuleGetFunction(void **function, void *module, const char *name) { return *function = module, 0; }
int cuFuncGetAttribute(int *value, int attribute, void *function) { return *value = 2048, 0; }
/* Static and dynamic shared memory together are what a block can have. */
int cuFuncSetAttribute(void *function, int attribute, int value) {
    return attribute == 8 && value == 101376 - 2048 ? 0 : INVALID_VALUE;
}
int cuMemAllocAsync(address *at, size bytes, void *stream) {
    if (used + bytes > TOTAL)
        return OUT_OF_MEMORY;
    char *block = calloc(1, bytes + HEADER);
    *(size *)block = bytes;
    used += bytes;
    return *at = (address)(block + HEADER), 0;
}
int cuMemFreeAsync(address at, void *stream) {
    char *block = (char *)at - HEADER;
    used -= *(size *)block;
    return free(block), 0;
}
int cuMemcpyHtoDAsync_v2(address to, const void *from, size n, void *stream) { return memcpy((void *)to, from, n), 0; }
int cuMemcpyDtoHAsync_v2(void *to, address from, size n, void *stream) { return memcpy(to, (void *)from, n), 0; }
int cuMemcpyDtoDAsync_v2(address to, address from, size n, void *stream) {
    return memcpy((void *)to, (void *)from, n), 0;
}
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **parameters, void **extra) {
    launched = 1;
    int packed = extra[0] == (void *)1 && extra[2] == (void *)2 && !extra[4] && *(size *)extra[3] % 8 == 0;
    return !parameters && packed && gx && bx ? 0 : INVALID_VALUE;
}
int cuMemGetInfo_v2(size *available, size *total) { return *available = TOTAL - used, *total = TOTAL, 0; }
