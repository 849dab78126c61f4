// Kernels that clang compiles to PTX for the emulator's tests. See README.md for the command.
// Written against the compiler's builtins alone: no CUDA headers are needed.
#define GLOBAL extern "C" __attribute__((global))
#define DEVICE __attribute__((device))
#define SHARED __attribute__((shared))
#define CONSTANT __attribute__((constant))
#define TID __nvvm_read_ptx_sreg_tid_x()
#define TID_Y __nvvm_read_ptx_sreg_tid_y()
#define NTID __nvvm_read_ptx_sreg_ntid_x()
#define CTAID __nvvm_read_ptx_sreg_ctaid_x()
#define CTAID_Y __nvvm_read_ptx_sreg_ctaid_y()
#define NCTAID __nvvm_read_ptx_sreg_nctaid_x()

DEVICE static void barrier() { __nvvm_bar_sync(0); }

DEVICE static float warp_sum(float x) {
  for (int i = 16; i > 0; i /= 2) x += __nvvm_shfl_sync_bfly_f32(0xffffffff, x, i, 31);
  return x;
}

GLOBAL void saxpy(int n, float a, const float *x, float *y) {
  int i = CTAID * NTID + TID;
  if (i < n) y[i] = a * x[i] + y[i];
}

// One sum per block, in shared memory.
GLOBAL void block_sum(const float *x, float *out, int n) {
  SHARED static float part[256];
  int t = TID;
  float sum = 0;
  for (int i = CTAID * NTID + t; i < n; i += NTID * NCTAID) sum += x[i];
  part[t] = sum;
  barrier();
  for (int half = 128; half > 0; half /= 2) {
    if (t < half) part[t] += part[t + half];
    barrier();
  }
  if (t == 0) out[CTAID] = part[0];
}

DEVICE unsigned blocks_done;

// The whole sum in one launch: the last block to finish adds up what the others left.
GLOBAL void grid_sum(const float *x, volatile float *partial, float *out, int n) {
  SHARED static float part[8];
  SHARED static unsigned last;
  int t = TID, lane = t % 32, warp = t / 32;
  float sum = 0;
  for (int i = CTAID * NTID + t; i < n; i += NTID * NCTAID) sum += x[i];
  sum = warp_sum(sum);
  if (lane == 0) part[warp] = sum;
  barrier();
  if (t == 0) {
    float all = 0;
    for (int w = 0; w < NTID / 32; w++) all += part[w];
    partial[CTAID] = all;
    __nvvm_membar_gl();
    last = __nvvm_atom_inc_gen_ui(&blocks_done, NCTAID - 1) == NCTAID - 1;
  }
  barrier();
  if (last && t == 0) {
    float all = 0;
    for (int b = 0; b < NCTAID; b++) all += partial[b];
    *out = all;
  }
}

// Inclusive scan of one block.
GLOBAL void block_scan(const int *x, int *y, int n) {
  SHARED static int buffer[2][256];
  int t = TID, from = 0;
  buffer[0][t] = t < n ? x[t] : 0;
  barrier();
  for (int step = 1; step < 256; step *= 2) {
    int value = buffer[from][t];
    if (t >= step) value += buffer[from][t - step];
    buffer[1 - from][t] = value;
    from = 1 - from;
    barrier();
  }
  if (t < n) y[t] = buffer[from][t];
}

// Through a tile of shared memory, padded against bank conflicts.
GLOBAL void transpose(const float *x, float *y, int rows, int cols) {
  SHARED static float tile[32][33];
  int c = CTAID * 32 + TID, r = CTAID_Y * 32 + TID_Y;
  for (int i = 0; i < 32; i += 8)
    if (c < cols && r + i < rows) tile[TID_Y + i][TID] = x[(r + i) * cols + c];
  barrier();
  c = CTAID_Y * 32 + TID, r = CTAID * 32 + TID_Y;
  for (int i = 0; i < 32; i += 8)
    if (c < rows && r + i < cols) y[(r + i) * rows + c] = tile[TID][TID_Y + i];
}

GLOBAL void histogram(const unsigned char *x, unsigned *counts, int n) {
  SHARED static unsigned local[256];
  for (int i = TID; i < 256; i += NTID) local[i] = 0;
  barrier();
  for (int i = CTAID * NTID + TID; i < n; i += NTID * NCTAID) __nvvm_atom_add_gen_i((int *)&local[x[i]], 1);
  barrier();
  for (int i = TID; i < 256; i += NTID)
    if (local[i]) __nvvm_atom_add_gen_i((int *)&counts[i], local[i]);
}

// A row per warp.
GLOBAL void softmax(const float *x, float *y, int cols) {
  int row = CTAID, t = TID;
  x += row * cols, y += row * cols;
  float most = -3.4e38f;
  for (int i = t; i < cols; i += 32) most = x[i] > most ? x[i] : most;
  for (int i = 16; i > 0; i /= 2) {
    float other = __nvvm_shfl_sync_bfly_f32(0xffffffff, most, i, 31);
    most = other > most ? other : most;
  }
  float sum = 0;
  for (int i = t; i < cols; i += 32) {
    float e = __nvvm_ex2_approx_f((x[i] - most) * 1.44269504f);
    y[i] = e, sum += e;
  }
  sum = warp_sum(sum);
  for (int i = t; i < cols; i += 32) y[i] /= sum;
}

CONSTANT float epsilon = 1e-5f;

GLOBAL void layer_norm(const float *x, const float *gain, const float *bias, float *y, int cols) {
  int row = CTAID, t = TID;
  x += row * cols, y += row * cols;
  float sum = 0, squares = 0;
  for (int i = t; i < cols; i += 32) sum += x[i];
  float mean = warp_sum(sum) / cols;
  for (int i = t; i < cols; i += 32) squares += (x[i] - mean) * (x[i] - mean);
  float scale = __nvvm_rsqrt_approx_f(warp_sum(squares) / cols + epsilon);
  for (int i = t; i < cols; i += 32) y[i] = (x[i] - mean) * scale * gain[i] + bias[i];
}

// Tiles of 16 by 16.
GLOBAL void matmul(const float *a, const float *b, float *c, int m, int n, int k) {
  SHARED static float sa[16][16], sb[16][16];
  int col = CTAID * 16 + TID, row = CTAID_Y * 16 + TID_Y;
  float sum = 0;
  for (int at = 0; at < k; at += 16) {
    sa[TID_Y][TID] = row < m && at + TID < k ? a[row * k + at + TID] : 0;
    sb[TID_Y][TID] = col < n && at + TID_Y < k ? b[(at + TID_Y) * n + col] : 0;
    barrier();
    for (int i = 0; i < 16; i++) sum += sa[TID_Y][i] * sb[i][TID];
    barrier();
  }
  if (row < m && col < n) c[row * n + col] = sum;
}

// One warp and one 16 by 16 tile of the result, on tensor cores.
GLOBAL void matmul_wmma(const __fp16 *a, const __fp16 *b, float *c, int n, int k) {
  int fa[8], fb[8];
  float fc[8] = {0, 0, 0, 0, 0, 0, 0, 0};
  int row = CTAID_Y * 16, col = CTAID * 16;
  for (int at = 0; at < k; at += 16) {
    __hmma_m16n16k16_ld_a(fa, (const int *)(a + row * k + at), k, 0);
    __hmma_m16n16k16_ld_b(fb, (const int *)(b + at * n + col), n, 0);
    __hmma_m16n16k16_mma_f32f32(fc, fa, fb, fc, 0, 0);
  }
  __hmma_m16n16k16_st_c_f32(c + row * n + col, fc, n, 0);
}

DEVICE __attribute__((noinline)) double horner(const double *c, int n, double x) {
  double y = 0;
  for (int i = n; i-- > 0;) y = y * x + c[i];
  return y;
}

// Calls, local arrays, double precision, switches.
GLOBAL void polynomial(const double *x, double *y, const int *kind, int n) {
  int i = CTAID * NTID + TID;
  if (i >= n) return;
  double c[6];
  for (int j = 0; j < 6; j++) c[j] = 1.0 / (j + 1 + kind[i]);
  double r;
  switch (kind[i]) {
    case 0: r = horner(c, 6, x[i]); break;
    case 1: r = horner(c, 3, -x[i]); break;
    case 2: r = __nvvm_sqrt_rn_d(horner(c, 4, x[i] * x[i])); break;
    case 3: r = x[i] / horner(c, 2, x[i]); break;
    case 4: r = (double)(long long)(x[i] * 1e6) ; break;
    default: r = -1;
  }
  y[i] = r;
}
