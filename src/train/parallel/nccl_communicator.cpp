#include "tensor/nccl.h"
#include "train/parallel/communicator.h"

namespace nmt::train {
namespace {

// A GPU that waits for a lost rank blocks silently. Therefore the hosts meet before the first sum
// of an update and before a broadcast: a rank that is lost until then, or that is late because it
// splits a batch, is waited for by the hosts, mostly asleep, and the error names it. A rank that is
// lost later is found where the hosts exchange the counts of the update, which they do before they
// wait for their devices, or by these waits (tensor/nccl.h).
class NcclCommunicator : public Communicator {
 public:
  NcclCommunicator(Communicator& host, CudaDevice& device, double timeout) : host_(host) {
    Nccl::Id id{};
    if (host.rank() == 0) id = Nccl::new_id();
    host.broadcast(id.data(), id.size());
    gpus_ = std::make_unique<Nccl>(device, id, host.rank(), host.size(), timeout);
  }
  int rank() const override { return host_.rank(); }
  int size() const override { return host_.size(); }
  int local_rank() const override { return host_.local_rank(); }
  int local_size() const override { return host_.local_size(); }
  int sharing() const override { return host_.sharing(); }
  void set_timeout(double seconds) override {
    host_.set_timeout(seconds);
    gpus_->set_timeout(seconds);
  }
  bool has_lost() const override { return host_.has_lost(); }
  void barrier() override { host_.barrier(); }
  void all_reduce_sum(double* values, std::int64_t n) override { host_.all_reduce_sum(values, n); }
  std::vector<std::vector<std::int32_t>> all_gather(
      const std::vector<std::int32_t>& mine) override {
    return host_.all_gather(mine);
  }
  void broadcast(void* data, std::size_t bytes) override { host_.broadcast(data, bytes); }
  void abort(int status) override { host_.abort(status); }

  void all_reduce_sum(float* values, std::int64_t n) override {
    begin_sum(values, n);
    finish_sums();
  }
  void meet_before_sums() override { meet(); }
  void begin_sum(float* values, std::int64_t n) override { gpus_->begin_sum(values, n); }
  void finish_sums() override { gpus_->finish_sums(); }
  void broadcast(float* values, std::int64_t n) override {
    meet();
    gpus_->broadcast(values, n);
  }

 private:
  void meet() {
    double nothing = 0;
    host_.all_reduce_sum(&nothing, 1);
  }
  Communicator& host_;
  std::unique_ptr<Nccl> gpus_;
};

}  // namespace

std::unique_ptr<Communicator> over_nccl(Communicator& host, CudaDevice& device, double timeout) {
  return std::make_unique<NcclCommunicator>(host, device, timeout);
}

}  // namespace nmt::train
