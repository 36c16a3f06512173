#include "kernels/pointwise.h"

#include "kernels/activation.h"
#include "kernels/decoding/step_rows.h"
#include "tests/cuda/table.h"

namespace nmt::test {
namespace {

using namespace nmt::kernels;

void elementwise(Parity& p, const std::function<void(std::int64_t)>& body) {
  for (std::int64_t n : {1, 3, 31, 33, 257, 70001}) {
    p.sizes("n {}", n);
    body(n);
  }
}

void matrices(Parity& p, const std::function<void(std::int64_t, std::int64_t)>& body) {
  for (std::int64_t rows : odd_sizes)
    for (std::int64_t width : {1, 3, 31, 33, 64, 257}) {
      p.sizes("rows {} width {}", rows, width);
      body(rows, width);
    }
}

void activations(Parity& p, const std::function<void(Activation, std::int64_t)>& body) {
  for (const Activation activation : {Activation::relu, Activation::silu, Activation::gelu})
    for (const std::int64_t n : {7, 33, 5003}) {
      p.sizes("activation {} n {}", static_cast<int>(activation), n);
      body(activation, n);
    }
}

void check_fill(Parity& p) {
  elementwise(p, [&](std::int64_t n) {
    const auto x = p.floats(n);
    p.run([&](const auto& on) { fill(on, x(on), n, 2.5f); }, 0);
  });
}

void check_add_scaled(Parity& p) {
  elementwise(p, [&](std::int64_t n) {
    const auto x = p.floats(n), y = p.floats(n);
    p.run([&](const auto& on) { add_scaled(on, n, 0.3f, x(on), y(on)); });
  });
}

void check_scale(Parity& p) {
  elementwise(p, [&](std::int64_t n) {
    const auto x = p.floats(n), y = p.floats(n);
    p.run(
        [&](const auto& on) {
          scale(on, n, 0.3f, x(on), y(on));
          scale(on, n, 0.3f, x(on), x(on));
        },
        0);
  });
}

void check_add(Parity& p) {
  elementwise(p, [&](std::int64_t n) {
    const auto x = p.floats(n), y = p.floats(n), z = p.floats(n);
    p.run(
        [&](const auto& on) {
          add(on, n, x(on), y(on), z(on));
          add(on, n, x(on), y(on), y(on));
        },
        0);
  });
}

void check_add_bias(Parity& p) {
  matrices(p, [&](std::int64_t rows, std::int64_t width) {
    const auto x = p.floats(rows * width), bias = p.floats(width), y = p.floats(rows * width);
    p.run([&](const auto& on) { add_bias(on, rows, width, x(on), bias(on), y(on)); }, 0);
  });
}

void check_sum_rows(Parity& p) {
  matrices(p, [&](std::int64_t rows, std::int64_t width) {
    const auto dy = p.floats(rows * width), dbias = p.floats(width);
    p.run([&](const auto& on) { sum_rows(on, rows, width, dy(on), dbias(on)); });
  });
}

void check_tanh_forward(Parity& p) {
  elementwise(p, [&](std::int64_t n) {
    const auto x = p.floats(n), y = p.floats(n);
    p.run([&](const auto& on) { tanh_forward(on, n, x(on), y(on)); });
  });
}

void check_tanh_backward(Parity& p) {
  elementwise(p, [&](std::int64_t n) {
    const auto y = p.floats(n), dy = p.floats(n), dx = p.floats(n);
    p.run([&](const auto& on) { tanh_backward(on, n, y(on), dy(on), dx(on), n % 3 == 0); });
  });
}

void check_gate_forward(Parity& p) {
  activations(p, [&](Activation activation, std::int64_t n) {
    const auto gate = p.floats(n), x = p.floats(n), y = p.floats(n), z = p.floats(n);
    p.run([&](const auto& on) {
      gate_forward(on, activation, n, gate(on), x(on), y(on));
      gate_forward(on, activation, n, gate(on), nullptr, z(on));
    });
  });
}

void check_gate_backward(Parity& p) {
  activations(p, [&](Activation activation, std::int64_t n) {
    const auto gate = p.floats(n), x = p.floats(n), dy = p.floats(n);
    const auto first = p.floats(n), second = p.floats(n), third = p.floats(n), dx = p.floats(n),
               dx2 = p.floats(n);
    p.run([&](const auto& on) {
      gate_backward(on, activation, n, gate(on), x(on), {dy(on), first(on), dx(on), true, false});
      gate_backward(on, activation, n, gate(on), x(on), {dy(on), second(on), dx2(on), false, true});
      gate_backward(on, activation, n, gate(on), nullptr, {.dy = dy(on), .dgate = third(on)});
    });
  });
}

void check_dropout(Parity& p) {
  elementwise(p, [&](std::int64_t n) {
    const auto x = p.floats(n), y = p.floats(n);
    p.run(
        [&](const auto& on) {
          dropout(on, 1, n, {}, 0.3f, 0x123456789ABCDEFull, 0xFEDCBA987654321ull, x(on), y(on));
        },
        0);
  });
}

void check_dropout_of_a_part(Parity& p) {
  matrices(p, [&](std::int64_t rows, std::int64_t width) {
    const auto x = p.floats(rows * width), y = p.floats(rows * width), z = p.floats(rows * width);
    const auto some = p.integers(rows, 500);
    RowMap map{.batch = 3, .step = 17, .first = 2, .stride = 5};
    p.run(
        [&](const auto& on) {
          RowMap chosen = map;
          chosen.rows = some(on);
          dropout(on, rows, width, map, 0.3f, 1, 2, x(on), y(on));
          dropout(on, rows, width, chosen, 0.3f, 1, 2, x(on), z(on));
        },
        0);
  });
}

void check_gather_rows(Parity& p) {
  matrices(p, [&](std::int64_t rows, std::int64_t width) {
    const auto ids = p.integers(rows, 20);
    const auto table = p.floats(20 * width), out = p.floats(rows * width);
    p.run([&](const auto& on) { gather_rows(on, rows, width, ids(on), table(on), out(on)); }, 0);
  });
}

void check_pick(Parity& p) {
  matrices(p, [&](std::int64_t rows, std::int64_t width) {
    const auto columns = p.integers(rows, static_cast<std::int32_t>(width));
    const auto x = p.floats(rows * width), out = p.floats(rows);
    p.run([&](const auto& on) { pick(on, rows, width, x(on), columns(on), out(on)); }, 0);
  });
}

void check_scatter_add_rows(Parity& p) {
  // The order of the sum is the same, so the bits are equal.
  matrices(p, [&](std::int64_t rows, std::int64_t width) {
    std::vector<std::int32_t> symbols;
    for (std::int64_t r = 0; r < rows; ++r)
      symbols.push_back(static_cast<std::int32_t>(p.rng().below(20)));
    const auto ids = p.integers(symbols), runs = p.integers(id_runs(symbols));
    const auto dy = p.floats(rows * width), dtable = p.floats(20 * width);
    p.run(
        [&](const auto& on) {
          scatter_add_rows(on, rows, width, 20, ids(on), runs(on), dy(on), dtable(on));
        },
        0);
  });
}

void check_add_to_rows(Parity& p) {
  // Some thousand rows: the work must be linear in their number.
  const auto rows_of = [&](std::int64_t rows, std::int64_t width) {
    std::vector<std::int32_t> targets;
    for (std::int64_t r = 0; r < rows; ++r)
      targets.push_back(static_cast<std::int32_t>(2 * ((r + 7) % rows)));
    const auto at = p.integers(targets);
    const auto from = p.floats(rows * width), to = p.floats(2 * rows * width);
    p.run([&](const auto& on) { add_to_rows(on, rows, width, at(on), from(on), to(on)); }, 0);
  };
  matrices(p, rows_of);
  p.sizes("rows 16384 width 4");
  rows_of(16384, 4);
}

void check_copy_columns(Parity& p) {
  matrices(p, [&](std::int64_t rows, std::int64_t width) {
    const auto from = p.floats(rows * (width + 3)), to = p.floats(rows * (width + 5)),
               sum = p.floats(rows * (width + 5));
    p.run(
        [&](const auto& on) {
          copy_columns(on, rows, width, from(on) + 2, width + 3, to(on) + 4, width + 5, false);
          copy_columns(on, rows, width, from(on) + 2, width + 3, sum(on) + 1, width + 5, true);
        },
        0);
  });
}

void check_gather_rows_of_each(Parity& p) {
  // More matrices than a launch takes, of one width or two.
  const auto gather = [&](std::int64_t rows, std::int64_t width) {
    const std::int64_t more = width % 4 == 0 ? 4 : rows % 2;
    const auto ids = p.integers(rows, 20);
    std::vector<Both<float>> tables, outs;
    for (int i = 0; i < 18; ++i) {
      tables.push_back(p.floats(20 * (width + i % 2 * more)));
      outs.push_back(p.floats(rows * (width + i % 2 * more)));
    }
    p.run(
        [&](const auto& on) {
          std::vector<RowsOfMatrix> all;
          for (std::size_t i = 0; i < tables.size(); ++i)
            all.push_back(
                {width + static_cast<std::int64_t>(i % 2) * more, tables[i](on), outs[i](on)});
          gather_rows_of_each(on, rows, ids(on), all);
        },
        0);
  };
  matrices(p, gather);
  p.sizes("rows 33 width 64, by fours");
  gather(33, 64);
}

void check_join_columns(Parity& p) {
  const auto join = [&](std::int64_t rows, std::int64_t width) {
    const std::int64_t whole = 2 * width + 4;
    const auto a = p.floats(rows * width), b = p.floats(rows * 4), c = p.floats(rows * width),
               y = p.floats(rows * whole);
    const auto rounded =
        p.values(std::vector<Bfloat16>(static_cast<std::size_t>(rows * whole)), false);
    const auto parts = [&](const auto& on) {
      return std::vector<RowsOfMatrix>{
          {width, a(on), nullptr}, {4, b(on), nullptr}, {width, c(on), nullptr}};
    };
    p.run(
        [&](const Cpu& on) {
          join_columns(on, rows, parts(on), y(on), nullptr);
          for (std::int64_t i = 0; i < rows * whole; ++i) rounded(on)[i] = to_bf16(y(on)[i]);
        },
        [&](const Cuda& on) { join_columns(on, rows, parts(on), y(on), rounded(on)); }, 0);
  };
  matrices(p, join);
  p.sizes("rows 33 width 64, by fours");
  join(33, 64);
}

void check_tanh_rounded(Parity& p) {
  elementwise(p, [&](std::int64_t n) {
    // Values whose tanh both sides round to the same number.
    std::vector<float> exact(static_cast<std::size_t>(n));
    for (float& value : exact) value = p.rng().below(2) ? 20.0f : -20.0f;
    const auto x = p.values(exact, true), y = p.floats(n);
    const auto rounded = p.values(std::vector<Bfloat16>(static_cast<std::size_t>(n)), false);
    p.run(
        [&](const Cpu& on) {
          tanh_forward(on, n, x(on), y(on));
          for (std::int64_t i = 0; i < n; ++i) rounded(on)[i] = to_bf16(y(on)[i]);
        },
        [&](const Cuda& on) { tanh_rounded(on, n, x(on), y(on), rounded(on)); }, 2e-6);
  });
}

void check_gather_rows_rounded(Parity& p) {
  for (const std::int64_t rows : {1, 3, 33})
    for (const std::int64_t width : {8, 64, 1000}) {
      p.sizes("rows {} width {}", rows, width);
      const std::int64_t n = rows * width;
      const auto ids = p.integers(rows, 20);
      const auto table = p.floats(20 * width), y = p.floats(n);
      const auto rounded = p.values(std::vector<Bfloat16>(static_cast<std::size_t>(n)), false);
      p.run(
          [&](const Cpu& on) {
            gather_rows(on, rows, width, ids(on), table(on), y(on));
            for (std::int64_t i = 0; i < n; ++i) rounded(on)[i] = to_bf16(y(on)[i]);
          },
          [&](const Cuda& on) {
            gather_rows_rounded(on, rows, width, ids(on), table(on), y(on), rounded(on));
          },
          0);
    }
}

void check_dropout_rounded(Parity& p) {
  for (const std::int64_t rows : {1, 3, 33})
    for (const std::int64_t width : {8, 64, 1000}) {
      p.sizes("rows {} width {}", rows, width);
      const std::int64_t n = rows * width;
      const auto x = p.floats(n), y = p.floats(n);
      const auto some = p.integers(rows, 500);
      const auto rounded = p.values(std::vector<Bfloat16>(static_cast<std::size_t>(n)), false);
      const auto drawn = [&](const auto& on) {
        Dropout d{.p = 0.3f, .key = 5, .stream = 7};
        d.map = {.batch = 3, .step = 17, .first = 2, .stride = 5};
        d.map.rows = some(on);
        return d;
      };
      p.run(
          [&](const Cpu& on) {
            const Dropout d = drawn(on);
            dropout(on, rows, width, d.map, d.p, d.key, d.stream, x(on), y(on));
            for (std::int64_t i = 0; i < n; ++i) rounded(on)[i] = to_bf16(y(on)[i]);
          },
          [&](const Cuda& on) {
            dropout_rounded(on, rows, width, drawn(on), x(on), y(on), rounded(on));
          },
          0);
    }
}

}  // namespace

std::vector<ParityRow> pointwise_parity() {
  return {
      {"fill", check_fill},
      {"add_scaled", check_add_scaled},
      {"scale", check_scale},
      {"add", check_add},
      {"add_bias", check_add_bias},
      {"sum_rows", check_sum_rows},
      {"tanh_forward", check_tanh_forward},
      {"tanh_backward", check_tanh_backward},
      {"gate_forward", check_gate_forward},
      {"gate_backward", check_gate_backward},
      {"dropout", check_dropout},
      {"dropout_of_a_part", check_dropout_of_a_part},
      {"gather_rows", check_gather_rows},
      {"pick", check_pick},
      {"scatter_add_rows", check_scatter_add_rows},
      {"add_to_rows", check_add_to_rows},
      {"copy_columns", check_copy_columns},
      {"gather_rows_of_each", check_gather_rows_of_each},
      {"join_columns", check_join_columns},
      {"tanh_rounded", check_tanh_rounded},
      {"gather_rows_rounded", check_gather_rows_rounded},
      {"dropout_rounded", check_dropout_rounded},
  };
}

}  // namespace nmt::test
