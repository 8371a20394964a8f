// `add.so` is this file and a twin with a double for the float, each compiled by
//   nvcc -c -cudart none -Xcompiler -fPIC -gencode arch=compute_80,code=sm_80
//     -gencode arch=compute_90,code=sm_90 -gencode arch=compute_90,code=compute_90
// linked into one shared object (the twin's host symbol made local) and stripped: two containers,
// each with an entry `add`.
extern "C" __global__ void add(const float *x, float *y, float by) {
  y[threadIdx.x] += by * x[threadIdx.x];
}
