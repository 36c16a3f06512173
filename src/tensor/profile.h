#pragma once

namespace nmt {

/// The least work of a part of a pass: the floating-point operations of its products, and the bytes
/// it moves where no product bounds it.
struct PartWork {
  double flops = 0;
  double bytes = 0;
};

/// Receives the parts of a pass as the ops of autograd run them, for benchmarks. A context without
/// one measures nothing.
class Profile {
 public:
  virtual ~Profile() = default;
  virtual void begin() = 0;
  /// Ends the part that began at begin(); parts do not nest. `part` outlives the profile. Throws
  /// nothing: a destructor calls it.
  virtual void end(const char* part, const PartWork& work) = 0;
};

/// Reports a part from construction to destruction.
class Region {
 public:
  Region(Profile* profile, const char* part, const PartWork& work = {})
      : profile_(profile), part_(part), work_(work) {
    if (profile_) profile_->begin();
  }
  ~Region() {
    if (profile_) profile_->end(part_, work_);
  }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

 private:
  Profile* profile_;
  const char* part_;
  PartWork work_;
};

}  // namespace nmt
