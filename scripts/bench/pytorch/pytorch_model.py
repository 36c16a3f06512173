"""The `deep` model of this project (docs/design/architecture.md) in PyTorch, as its users would
write it: nn.GRU where the whole sequence is known, a loop of cells where attention needs the
previous step. Weights are loaded from our model.safetensors, so that losses can be compared. Used
by scripts/bench/pytorch/compare_pytorch.py, compare_decoding.py and compare_growth.py."""
import json
import struct

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def read_safetensors(path):
    """Reads a .safetensors file: name -> float32 array."""
    with open(path, "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = f.read()
    out = {}
    for name, entry in header.items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            begin, end = entry["data_offsets"]
            out[name] = torch.from_numpy(
                np.frombuffer(data[begin:end], dtype=np.float32).reshape(entry["shape"]).copy())
    return out


def fill(linear, weight, bias=None):
    with torch.no_grad():
        linear.weight.copy_(weight.t())
        if bias is not None:
            linear.bias.copy_(bias)


def gate_order(w):
    """Converts our planes z, r, n (last axis) to PyTorch's rows r, z, n."""
    z, r, n = w.chunk(3, dim=-1)
    return torch.cat([r, z, n], dim=-1)


def fill_gru(gru, weights, prefix):
    with torch.no_grad():
        gru.weight_ih_l0.copy_(gate_order(weights[prefix + "input_projection"]).t())
        gru.bias_ih_l0.copy_(gate_order(weights[prefix + "input_projection_bias"]))
        gru.weight_hh_l0.copy_(gate_order(weights[prefix + "recurrent_projection"]).t())
        gru.bias_hh_l0.copy_(gate_order(weights[prefix + "recurrent_projection_bias"]))


def reverse_each(x, lengths):
    """x [S,B,N] with the first lengths[b] steps of each sentence in reverse order; its own
    inverse."""
    steps = torch.arange(x.shape[0], device=x.device)[:, None]
    index = torch.where(steps < lengths[None], lengths[None] - 1 - steps, steps)
    return x.gather(0, index[:, :, None].expand_as(x))


class Additive(nn.Module):
    """Bahdanau attention with one head; time-major."""

    def __init__(self, query, memory, space):
        super().__init__()
        self.query = nn.Linear(query, space, bias=False)
        self.memory = nn.Linear(memory, space, bias=False)
        self.v = nn.Parameter(torch.empty(space))

    def forward(self, query, keys, values, blocked):
        """query [T,B,H], keys [S,B,A], values [S,B,M], blocked [B,1,S] -> [T,B,M]"""
        q = self.query(query).transpose(0, 1)  # [B,T,A]
        scores = torch.tanh(q[:, :, None] + keys.transpose(0, 1)[:, None]) @ self.v  # [B,T,S]
        weights = F.softmax(scores.masked_fill(blocked, -torch.inf), dim=-1)
        return torch.bmm(weights, values.transpose(0, 1)).transpose(0, 1)


class Deep(nn.Module):
    """attention_query: "first-layer" or "recurrent"; `depth` layers on each side."""

    def __init__(self, vocabulary, e, h, attention_query, dropout, depth=2):
        super().__init__()
        self.recurrent, self.p, self.depth = attention_query == "recurrent", dropout, depth
        self.embedding = nn.Embedding(vocabulary, e)
        self.ahead, self.back = nn.GRU(e, h), nn.GRU(e, h)
        self.encoder = nn.ModuleList([nn.GRU(e, h) for _ in range(depth - 1)])
        self.encoder_bridges = nn.ModuleList([nn.Linear(2 * h if layer == 0 else h, e)
                                              for layer in range(depth)])
        self.decoder_bridges = nn.ModuleList([nn.Linear(h, e) for _ in range(depth)])
        self.start = nn.ModuleList([nn.Linear(h if depth > 1 else 2 * h, h) for _ in range(depth)])
        self.attention = Additive(h, e, e)
        if self.recurrent:
            self.lower, self.higher = nn.GRUCell(e, h), nn.GRUCell(e, h)
        else:
            self.first = nn.GRU(e, h)
        self.upper = nn.ModuleList([nn.GRU(2 * e, h) for _ in range(depth - 1)])
        self.readout = nn.Linear(2 * e, e)
        self.output_bias = nn.Parameter(torch.zeros(vocabulary))

    def load(self, w):
        with torch.no_grad():
            self.embedding.weight.copy_(w["decoder.embedding"])
            self.output_bias.copy_(w["decoder.output_bias"])
            self.attention.v.copy_(w["decoder.layer_0.attention.v"].flatten())
        fill_gru(self.ahead, w, "encoder.layer_0.forward.")
        fill_gru(self.back, w, "encoder.layer_0.backward.")
        for side, bridges in (("encoder", self.encoder_bridges), ("decoder", self.decoder_bridges)):
            for i, bridge in enumerate(bridges):
                fill(bridge, w[f"{side}.layer_{i}.output_projection"],
                     w[f"{side}.layer_{i}.output_projection_bias"])
        for i, layer in enumerate(self.encoder, 1):
            fill_gru(layer, w, f"encoder.layer_{i}.")
        for i, start in enumerate(self.start):
            fill(start, w[f"decoder.layer_{i}.initial_state_0"],
                 w[f"decoder.layer_{i}.initial_state_0_bias"])
        fill(self.attention.query, w["decoder.layer_0.attention.query_projection"])
        fill(self.attention.memory, w["decoder.layer_0.attention.memory_projection"])
        if self.recurrent:
            for cell, at in ((self.lower, "decoder.layer_0.lower."),
                             (self.higher, "decoder.layer_0.higher.")):
                with torch.no_grad():
                    cell.weight_ih.copy_(gate_order(w[at + "input_projection"]).t())
                    cell.bias_ih.copy_(gate_order(w[at + "input_projection_bias"]))
                    cell.weight_hh.copy_(gate_order(w[at + "recurrent_projection"]).t())
                    cell.bias_hh.copy_(gate_order(w[at + "recurrent_projection_bias"]))
        else:
            fill_gru(self.first, w, "decoder.layer_0.")
        for i, layer in enumerate(self.upper, 1):
            fill_gru(layer, w, f"decoder.layer_{i}.")
        fill(self.readout, w["decoder.readout"], w["decoder.readout_bias"])

    def drop(self, x):
        return F.dropout(x, self.p, self.training)

    def encode(self, source, lengths):
        """-> memory [S,B,E], keys [S,B,A], blocked [B,1,S], final state [B,F]"""
        x = self.drop(self.embedding(source))
        top = torch.cat([self.ahead(x)[0],
                         reverse_each(self.back(reverse_each(x, lengths))[0], lengths)], dim=-1)
        rows = torch.arange(top.shape[1], device=top.device)
        h = top.shape[2] // 2
        final = torch.cat([top[lengths - 1, rows, :h], top[0, :, h:]], dim=-1)
        x = x + self.drop(self.encoder_bridges[0](top))
        for layer, bridge in zip(self.encoder, list(self.encoder_bridges)[1:]):
            top = layer(x)[0]
            final = top[lengths - 1, rows]
            x = x + self.drop(bridge(top))
        blocked = (torch.arange(source.shape[0], device=source.device)[None]
                   >= lengths[:, None])[:, None]
        return x, self.attention.memory(x), blocked, final

    def decode(self, y, states, memory, keys, blocked):
        """y [T,B,E], one state [B,H] per layer -> input of the readout [T,B,2E], states
        after the last step"""
        if self.recurrent:
            h, outputs, contexts = states[0], [], []
            for step in y:
                s = self.lower(step, h)
                c = self.attention(s[None], keys, memory, blocked)[0]
                h = self.higher(c, s)
                outputs.append(h)
                contexts.append(c)
            top, context = torch.stack(outputs), torch.stack(contexts)
        else:
            top = self.first(y, states[0][None])[0]
            context = self.attention(top, keys, memory, blocked)
        after = [top[-1]]
        x = y + self.drop(self.decoder_bridges[0](top))
        for layer, bridge, state in zip(self.upper, list(self.decoder_bridges)[1:], states[1:]):
            top = layer(torch.cat([x, context], dim=-1), state[None])[0]
            after.append(top[-1])
            x = x + self.drop(bridge(top))
        return torch.cat([x, context], dim=-1), after

    def logits(self, features):
        return F.linear(self.drop(torch.tanh(self.readout(features))), self.embedding.weight,
                        self.output_bias)

    def forward(self, source, lengths, target_in, target_out, smoothing):
        """ids time-major [S,B], [T,B]; -1 in target_out is padding. Returns the summed loss and the
        number of target tokens."""
        memory, keys, blocked, final = self.encode(source, lengths)
        states = [start(final) for start in self.start]
        features, _ = self.decode(self.drop(self.embedding(target_in)), states, memory,
                                  keys, blocked)
        real = target_out >= 0
        loss = F.cross_entropy(self.logits(features[real]), target_out[real],
                               label_smoothing=smoothing, reduction="sum")
        return loss, int(real.sum())
