#include "model/decoding/model_decoding.h"

#include "autograd/ops/losses.h"
#include "autograd/ops/plain.h"
#include "kernels/decoding/top_k.h"
#include "kernels/pointwise.h"
#include "kernels/softmax_loss.h"
#include "model/directory/partial_output.h"
#include "tensor/copy.h"
#include "tensor/repeat.h"
#include "tensor/sub_arena.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace nmt {
namespace {

// Logits [block,V] take an eighth of the output table's [V,E]; fewer rows would mean reading the
// table too often.
constexpr std::int64_t table_divisor = 8, min_block = 32;

// One batch of sources under search: the shared memory, and the states of the live hypotheses.
class ModelDecoding : public Decoding {
 public:
  ModelDecoding(const Context& context, const DecodingParts& parts, SourceMemory memory,
                DecoderState state, bool want_attention)
      : context_(context),
        decoder_(parts.decoder),
        embed_(parts.embed),
        table_(parts.table),
        bias_(parts.bias),
        memory_(std::move(memory)),
        state_(std::move(state)),
        alignment_head_(parts.alignment_head),
        want_attention_(want_attention) {
    sentence_.resize(memory_.lengths().elements());
    for (std::size_t b = 0; b < sentence_.size(); ++b) sentence_[b] = static_cast<std::int32_t>(b);
  }

  DecodingStep advance(std::span<const std::int32_t> parents,
                       std::span<const std::int32_t> tokens) override {
    const std::int64_t rows = static_cast<std::int64_t>(parents.size());
    NMT_CHECK(parents.size() == tokens.size() && rows > 0, "{} parents for {} tokens",
              parents.size(), tokens.size());
    next_sentence_.clear();
    for (const std::int32_t parent : parents) {
      NMT_CHECK(parent >= 0 && parent < static_cast<std::int32_t>(sentence_.size()),
                "no hypothesis {} of {}", parent, sentence_.size());
      next_sentence_.push_back(sentence_[parent]);
    }
    sentence_.swap(next_sentence_);
    return extend(rows, [&](std::int64_t first, std::int64_t count) -> RowsOnDevice {
      return {send(parents.subspan(first, count), {count}),
              send(tokens.subspan(first, count), {1, count}),
              send(std::span<const std::int32_t>(sentence_).subspan(first, count), {count})};
    });
  }

  // Attention is brought to the host at every step.
  const Context* device() const override {
    return !backend_.host_memory && !want_attention_ ? &context_ : nullptr;
  }

  DecodingStep advance_on_device(const RowsOnDevice& rows) override {
    const std::int64_t n = rows.parents.elements();
    NMT_CHECK(device(), "this decoding's rows are named on the host");
    NMT_CHECK(n > 0 && rows.tokens.elements() == n && rows.sentences.elements() == n,
              "{} parents, {} tokens and {} sentences", n, rows.tokens.elements(),
              rows.sentences.elements());
    sentence_.clear();  // the host knows them no more
    return extend(n, [&](std::int64_t first, std::int64_t count) -> RowsOnDevice {
      return {rows.parents.slice(first, count), rows.tokens.slice(first, count).reshape({1, count}),
              rows.sentences.slice(first, count)};
    });
  }

  // Nothing keeps the memory of the marked states, as a step that kept it would write elsewhere.
  // The step after the mark overwrites them; what has overwritten them never ran.
  bool mark(std::vector<std::int64_t>& key) override {
    mark_.reset();
    if (!lie_in_values(state_)) return false;
    mark_ = Mark{borrow(state_), values_.memory->releases()};
    key.push_back(reinterpret_cast<std::intptr_t>(&decoder_));
    return true;
  }

  void return_to_mark() override {
    NMT_CHECK(mark_, "no step has been marked");
    if (values_.memory->releases() != mark_->releases)
      throw OutOfMemory("the memory of the states before these steps was needed for other values");
    readout_ = logits_ = {};
    readout_rounded_ = {};
    state_ = mark_->state;
    permit(state_);
  }

  void restrict_to(const Candidates& candidates) override {
    part_.emplace(context_, table_, bias_, candidates);
  }

  NextTokens score(int first, int count) override {
    logits_ = {};
    Tape tape(context_, false);
    if (!normalizer_ || normalizer_.elements() < count) normalizer_ = context_.empty({count});
    if (part_) {
      const auto sentences = std::span<const std::int32_t>(sentence_).subspan(first, count);
      logits_ = part_->score(tape, readout_.slice(first, count), sentences, normalizer_.f32());
      return {count, static_cast<int>(logits_.width()), logits_.f32(), normalizer_.f32()};
    }
    if (backend_.host_memory) {
      logits_ = ops::logits(tape, tape.constant(readout_.slice(first, count)), table_, nullptr);
      const std::int64_t width = logits_.width(), needed = count * kernels::top_k_blocks(width);
      if (!maxima_ || maxima_.elements() < needed) maxima_ = context_.empty({needed});
      kernels::finish_logits(context_.cpu, count, width, bias_.value.f32(), logits_.f32(),
                             maxima_.f32(), normalizer_.f32());
      return {count,        static_cast<int>(width), logits_.f32(), normalizer_.f32(), nullptr,
              maxima_.f32()};
    }
    NextTokens scores = score_logits(first, count);
    dispatch(context_, [&](const auto& backend) {
      kernels::log_sum_exp(backend, count, logits_.width(), logits_.f32(), normalizer_.f32());
    });
    scores.log_normalizer = normalizer_.f32();
    return scores;
  }

  NextTokens score_logits(int first, int count) override {
    logits_ = {};
    Tape tape(context_, false);
    const Var read = tape.constant(readout_.slice(first, count));
    if (count == readout_.rows()) read->rounded = readout_rounded_;
    logits_ = ops::logits(tape, read, table_, &bias_);
    return {count, static_cast<int>(logits_.width()), logits_.f32(), nullptr, &context_};
  }

 private:
  Tensor send(std::span<const std::int32_t> values, Shape shape) const {
    const Tensor tensor = context_.empty(shape, Dtype::i32);
    upload(context_, values, tensor);
    return tensor;
  }

  // A step: named(first, count) gives the rows [first, first + count), tokens as [1,count].
  template <class Named>
  DecodingStep extend(std::int64_t rows, Named&& named) {
    const std::int64_t steps = memory_.steps();
    if (want_attention_) attention_.resize(static_cast<std::size_t>(rows * steps));
    // The step overwrites the states before it, which its first kernel reads.
    const bool overwrites = rows <= backend_.decoder_rows && lie_in_values(state_);
    if (overwrites) state_ = borrow(state_);
    DecoderState next;
    const auto work = [&] {
      next = {};
      if (overwrites) permit(state_);
      next = decode(rows, steps, named);
    };
    // Where the host names no rows, all steps of so many are the same work.
    if (device() && sentence_.empty())
      repeat(context_, {reinterpret_cast<std::intptr_t>(&decoder_), rows}, work);
    else
      work();
    state_ = std::move(next);
    DecodingStep step;
    step.rows = static_cast<int>(rows);
    step.block = static_cast<int>(std::max<std::int64_t>(
        min_block, backend_.logits_block > 0 ? backend_.logits_block / table_.shape[0]
                                             : readout_.width() / table_divisor));
    if (want_attention_) step.attention = attention_.data();
    step.source_steps = static_cast<int>(steps);
    return step;
  }

  // The states after it, and the readouts. May be done again where nothing has run on the device.
  template <class Named>
  DecoderState decode(std::int64_t rows, std::int64_t steps, Named&& named) {
    readout_ = logits_ = {};  // the last step's make room for this one's
    readout_rounded_ = {};
    Context of_selected = context_, of_values = context_;
    if (backend_.replays) {
      of_selected.arena = &selected_.arena;
      of_values.arena = &values_.arena;
    }
    Tape selecting(of_selected, false), tape(of_values, false);
    DecoderState next(state_.size());
    const std::int64_t part = backend_.decoder_rows;
    for (std::int64_t first = 0; first < rows; first += part) {
      const std::int64_t count = std::min(part, rows - first);
      const RowsOnDevice part_rows = named(first, count);
      DecoderState state(state_.size());
      state.position = state_.position;
      std::vector<Var> selected =
          ops::select_rows_of_each(selecting, all_states(), part_rows.parents);
      all_states_.clear();
      std::size_t at = 0;
      for (std::size_t layer = 0; layer < state_.size(); ++layer)
        for (std::size_t i = 0; i < state_[layer].size(); ++i)
          state[layer].push_back(std::move(selected[at++]));
      const Decoder::Result out =
          decoder_(tape, embed_(tape, part_rows.tokens), memory_, state, part_rows.sentences);
      const Shape& features = out.features->value.shape();
      const Var rows_read = tape.constant(out.features->value.reshape({count, features[-1]}));
      rows_read->rounded = out.features->rounded;
      const Var read = decoder_.readout(tape, rows_read);
      put(read->value, first, rows, readout_);
      if (count == rows) readout_rounded_ = read->rounded;
      next.position = out.state.position;
      for (std::size_t layer = 0; layer < state_.size(); ++layer) {
        next[layer].resize(out.state[layer].size(),
                           tape.constant({}));  // a unit may start from fewer
        for (std::size_t i = 0; i < next[layer].size(); ++i) {
          Tensor whole = next[layer][i]->value;
          put(out.state[layer][i]->value, first, rows, whole);
          next[layer][i] = tape.constant(std::move(whole));
        }
      }
      if (want_attention_) read_attention(out.weights, count, attention_.data() + first * steps);
    }
    return next;
  }

  // False for states of the encoder, of a part of the rows, and where nothing is replayed.
  bool lie_in_values(const DecoderState& states) const {
    for (const std::vector<Var>& layer : states)
      for (const Var& state : layer)
        if (!state->value || !values_.memory->has(state->value.f32())) return false;
    return true;
  }

  // The same states without owning their memory.
  DecoderState borrow(const DecoderState& states) const {
    const Tape tape(context_, false);
    DecoderState borrowed(states.size());
    borrowed.position = states.position;
    for (std::size_t layer = 0; layer < states.size(); ++layer)
      for (const Var& state : states[layer])
        borrowed[layer].push_back(tape.constant(state->value.borrow()));
    return borrowed;
  }

  // Lets kernels read states whose memory no tensor has.
  void permit(const DecoderState& states) const {
    const Guard& guard = values_.arena.guard();
    if (guard.gap == 0) return;
    for (const std::vector<Var>& layer : states)
      for (const Var& state : layer)
        guard.permit(reinterpret_cast<const char*>(state->value.f32()),
                     static_cast<std::size_t>(state->value.elements()) * sizeof(float));
  }

  const std::vector<Var>& all_states() {
    for (const std::vector<Var>& layer : state_)
      all_states_.insert(all_states_.end(), layer.begin(), layer.end());
    return all_states_;
  }

  // Rows of a part become rows [first, ..) of the whole, which is the part itself when there is no
  // other.
  void put(const Tensor& part, std::int64_t first, std::int64_t rows, Tensor& whole) const {
    const std::int64_t count = part.rows(), width = part.width();
    if (count == rows) {
      whole = part;
      return;
    }
    if (!whole) whole = context_.empty({rows, width});
    dispatch(context_, [&](const auto& backend) {
      kernels::copy_columns(backend, count, width, part.f32(), width, whole.f32() + first * width,
                            width, false);
    });
  }

  // The weights of the head that alignments read, or the mean of all.
  void read_attention(const Tensor& weights, std::int64_t rows, float* out) const {
    const std::int64_t heads = weights.shape()[2], steps = weights.shape()[3];
    const std::vector<float> copy =
        backend_.host_memory ? std::vector<float>() : download<float>(context_, weights);
    const float* const values = backend_.host_memory ? weights.f32() : copy.data();
    if (alignment_head_ > 0) {
      for (std::int64_t r = 0; r < rows; ++r)
        std::copy_n(values + (r * heads + alignment_head_ - 1) * steps, steps, out + r * steps);
      return;
    }
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t s = 0; s < steps; ++s) {
        float sum = 0;
        for (std::int64_t head = 0; head < heads; ++head)
          sum += values[(r * heads + head) * steps + s];
        out[r * steps + s] = sum / static_cast<float>(heads);
      }
  }

  Context context_;
  const Backend& backend_ = *context_.backend;
  // Where work is replayed, every step finds all values at the same addresses: the selected states
  // that it starts from in one arena, and all that it computes, also its states, in another, which
  // is empty when it begins.
  SubArena selected_{*context_.arena}, values_{*context_.arena};
  const Decoder& decoder_;
  const std::function<Var(Tape&, const Tensor&)> embed_;
  Parameter& table_;
  Parameter& bias_;
  SourceMemory memory_;
  DecoderState state_;
  // A state between two steps. Its tensors do not own their memory.
  struct Mark {
    DecoderState state;
    std::int64_t releases = 0;
  };
  std::optional<Mark> mark_;
  std::vector<Var> all_states_;  // of state_, while a step selects their rows
  int alignment_head_;
  bool want_attention_;
  std::vector<std::int32_t> sentence_, next_sentence_;  // the memory's sentence of each row
  std::vector<float> attention_;                        // [n,S]
  Tensor readout_, logits_, normalizer_, maxima_;
  Rounded readout_rounded_;  // of the whole readout_, where an op has written it
  std::optional<PartialOutput> part_;
};

}  // namespace

std::unique_ptr<Decoding> start_decoding(const Context& context, const DecodingParts& parts,
                                         SourceMemory memory, DecoderState state,
                                         bool want_attention) {
  return std::make_unique<ModelDecoding>(context, parts, std::move(memory), std::move(state),
                                         want_attention);
}

}  // namespace nmt
