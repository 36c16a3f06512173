// CudaDevice in a build without CUDA: the constructor raises an error.

#include "core/error.h"
#include "tensor/cuda_device.h"
#include "tensor/cuda_timer.h"

namespace nmt {

struct CudaDevice::State {};

int CudaDevice::count(std::string& why) {
  why = "this build has no CUDA backend";
  return 0;
}

bool CudaDevice::is_usable(int, std::string& why) {
  return count(why) > 0;
}

CudaDevice::CudaDevice(int, std::optional<Precision>) {
  fail(ExitStatus::usage, "device=cuda: this build has no CUDA backend");
}
CudaDevice::~CudaDevice() = default;

// Never called: no object can exist.
int CudaDevice::index() const {
  NMT_FAIL("this build has no CUDA backend");
}
Precision CudaDevice::precision() const {
  NMT_FAIL("this build has no CUDA backend");
}
const std::string& CudaDevice::name() const {
  NMT_FAIL("this build has no CUDA backend");
}
CudaDevice::Memory CudaDevice::memory() const {
  NMT_FAIL("this build has no CUDA backend");
}
std::unique_ptr<MemorySource> CudaDevice::memory_source() {
  NMT_FAIL("this build has no CUDA backend");
}
void CudaDevice::to_device(void*, const void*, std::size_t) {
  NMT_FAIL("this build has no CUDA backend");
}
void CudaDevice::from_device(void*, const void*, std::size_t) {
  NMT_FAIL("this build has no CUDA backend");
}
void CudaDevice::begin_download(const void*, std::size_t) {
  NMT_FAIL("this build has no CUDA backend");
}
void CudaDevice::finish_download(void*, std::size_t) {
  NMT_FAIL("this build has no CUDA backend");
}
void CudaDevice::copy(void*, const void*, std::size_t) {
  NMT_FAIL("this build has no CUDA backend");
}
void CudaDevice::clear(void*, std::size_t) {
  NMT_FAIL("this build has no CUDA backend");
}
std::int64_t CudaDevice::waits() const {
  NMT_FAIL("this build has no CUDA backend");
}
void CudaDevice::synchronize() {
  NMT_FAIL("this build has no CUDA backend");
}
void CudaDevice::repeat(std::span<const std::int64_t>, const std::function<void()>&) {
  NMT_FAIL("this build has no CUDA backend");
}
void CudaDevice::between_graphs(std::span<const std::int64_t>, std::function<void()>) {
  NMT_FAIL("this build has no CUDA backend");
}
void CudaDevice::set_graphs(bool, std::int64_t) {
  NMT_FAIL("this build has no CUDA backend");
}
void CudaDevice::set_persistent(PersistentUse, std::int64_t) {
  NMT_FAIL("this build has no CUDA backend");
}
void CudaDevice::set_chunks(bool) {
  NMT_FAIL("this build has no CUDA backend");
}
PersistentUse CudaDevice::persistent() const {
  NMT_FAIL("this build has no CUDA backend");
}
bool CudaDevice::fork() {
  NMT_FAIL("this build has no CUDA backend");
}
void CudaDevice::second_branch() {
  NMT_FAIL("this build has no CUDA backend");
}
void CudaDevice::join() {
  NMT_FAIL("this build has no CUDA backend");
}
void CudaDevice::abandon_branches() noexcept {}
GraphCounts CudaDevice::graph_counts() const {
  NMT_FAIL("this build has no CUDA backend");
}

struct CudaTimer::State {};

CudaTimer::CudaTimer(CudaDevice&) {
  NMT_FAIL("this build has no CUDA backend");
}
CudaTimer::~CudaTimer() = default;
void CudaTimer::mark() {
  NMT_FAIL("this build has no CUDA backend");
}
std::vector<double> CudaTimer::intervals() {
  NMT_FAIL("this build has no CUDA backend");
}

ProfiledRange::ProfiledRange(CudaDevice& device) : device_(device) {
  NMT_FAIL("this build has no CUDA backend");
}
ProfiledRange::~ProfiledRange() = default;

}  // namespace nmt
