#pragma once

namespace nmt {

/// What a part of a pass must do at least: floating-point operations of its products, and bytes
/// where no product bounds it.
struct PartWork {
  double flops = 0;
  double bytes = 0;
};

/// Hears of the parts of a pass as ops run them (autograd), for benchmarks. A context without one
/// measures nothing.
class Profile {
 public:
  virtual ~Profile() = default;
  virtual void begin() = 0;
  /// The part since begin(); parts do not nest. `part` outlives the profile.
  virtual void end(const char* part, const PartWork& work) = 0;
};

/// A part while it runs.
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
