// Trains a small model on two parallel files: train SOURCE TARGET MODEL

#include <iostream>

#include <nmt/nmt.h>

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: train SOURCE TARGET MODEL\n";
    return static_cast<int>(nmt::ExitStatus::usage);
  }
  nmt::TrainOptions options;
  options.train_sets = {argv[1], argv[2]};
  options.model = argv[3];
  options.unit = "gru";
  options.dim_vocabs = {400};
  options.dim_emb = options.dim_rnn = 48;
  options.enc_depth = options.dec_depth = 1;
  options.mini_batch_words = 800;
  options.disp_freq = "10u";
  options.after = "40u";
  options.settings = {{"lr-warmup", "20u"}, {"valid-lines", "50"}};  // any option of nmt-train

  nmt::TrainCallbacks callbacks;
  callbacks.on_progress = [](const nmt::TrainProgress& progress) {
    std::cout << "update " << progress.updates << ", loss " << progress.loss << std::endl;
    return true;  // false: save and stop
  };
  callbacks.on_validation = [](const nmt::Validation& validation) {
    for (const auto& [metric, value] : validation.metrics)
      std::cout << metric << ' ' << value << std::endl;
    return true;
  };
  try {
    const nmt::TrainResult result = nmt::train_model(options, callbacks);
    std::cout << (result.finished ? "finished" : "stopped") << " after " << result.updates
              << " updates\n";
  } catch (const nmt::Error& error) {
    std::cerr << "error: " << error.what() << '\n';
    return static_cast<int>(error.status());
  }
}
