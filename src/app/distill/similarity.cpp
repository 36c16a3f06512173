#include "app/distill/similarity.h"

#include "eval/bleu.h"
#include "eval/chrf.h"

namespace nmt::app {

double similarity(const std::string& hypothesis, const std::string& reference, Selection by) {
  if (by == Selection::chrf) return chrf_from_counts(chrf_counts(hypothesis, {reference}, {}), {});
  BleuOptions options;
  options.effective_order = true;
  return bleu_from_counts(bleu_counts(hypothesis, {reference}, options), options).score;
}

std::size_t closest(const std::vector<std::string>& hypotheses, const std::string& reference,
                    Selection by) {
  if (by == Selection::score || hypotheses.size() == 1) return 0;
  std::size_t best = 0;
  double most = -1;
  for (std::size_t i = 0; i < hypotheses.size(); ++i)
    if (const double now = similarity(hypotheses[i], reference, by); now > most) {
      most = now;
      best = i;
    }
  return best;
}

double text_bleu(const std::vector<std::string>& outputs,
                 const std::vector<std::string>& references) {
  return corpus_bleu(outputs, references).score;
}

}  // namespace nmt::app
