"""A pre-norm Transformer (Vaswani et al. 2017; norms before the sublayers as in Xiong et al. 2020)
in PyTorch, and its conversion to CTranslate2. Used by compare_transformer.py and
compare_students.py."""
import math

import torch
import torch.nn.functional as F
from torch import nn

PAD = 0


def positions(length, width):
    """Sinusoidal positions [length, width]: sines in the first half, cosines in the second."""
    rates = torch.exp(-math.log(10000.0) * torch.arange(width // 2) / (width // 2 - 1))
    angles = torch.arange(length)[:, None] * rates[None, :]
    return torch.cat([torch.sin(angles), torch.cos(angles)], dim=1)


class Attention(nn.Module):
    """Multi-head attention; queries, keys and values are projected by one matrix each."""

    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.query, self.output = nn.Linear(width, width), nn.Linear(width, width)
        self.key_value = nn.Linear(width, 2 * width)

    def split(self, x):
        return x.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)

    def forward(self, x, memory, mask=None, causal=False):
        """x [B,T,d], memory [B,S,d]; mask [B,1,1,S]: True where a position is seen."""
        key, value = self.key_value(memory).chunk(2, dim=-1)
        y = F.scaled_dot_product_attention(self.split(self.query(x)), self.split(key),
                                           self.split(value), attn_mask=mask, is_causal=causal,
                                           dropout_p=self.dropout if self.training else 0.0)
        return self.output(y.transpose(1, 2).reshape(x.shape))


class Layer(nn.Module):
    """Self-attention, attention to the source in the decoder, feed-forward: each x + f(norm(x))."""

    def __init__(self, args, is_decoder):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(args.width) for _ in range(3 if is_decoder else 2))
        self.self_attention = Attention(args.width, args.heads, args.dropout)
        self.attention = Attention(args.width, args.heads, args.dropout) if is_decoder else None
        self.inner, self.outer = nn.Linear(args.width, args.ff), nn.Linear(args.ff, args.width)
        self.drop = nn.Dropout(args.dropout)

    def forward(self, x, source, mask):
        y = self.norms[0](x)
        x = x + self.drop(self.self_attention(y, y, None if self.attention else mask,
                                              causal=self.attention is not None))
        if self.attention:
            x = x + self.drop(self.attention(self.norms[1](x), source, mask))
        return x + self.drop(self.outer(self.drop(F.relu(self.inner(self.norms[-1](x))))))


class Transformer(nn.Module):
    """Encoder and decoder with one embedding matrix for source, target and softmax."""

    def __init__(self, vocabulary, args):
        super().__init__()
        self.width = args.width
        self.embedding = nn.Embedding(vocabulary, args.width)
        self.encoder = nn.ModuleList(Layer(args, False) for _ in range(args.layers))
        self.decoder = nn.ModuleList(Layer(args, True) for _ in range(args.decoder_layers))
        self.encoder_norm, self.decoder_norm = nn.LayerNorm(args.width), nn.LayerNorm(args.width)
        self.drop = nn.Dropout(args.dropout)
        self.register_buffer("positions", positions(1024, args.width), persistent=False)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)
        nn.init.normal_(self.embedding.weight, std=args.width**-0.5)

    def embed(self, ids):
        return self.drop(self.embedding(ids) * math.sqrt(self.width)
                         + self.positions[: ids.shape[1]])

    def forward(self, source, target):
        """source [B,S], target [B,T] with PAD; returns logits [B,T,V]."""
        mask = (source != PAD)[:, None, None, :]
        x = self.embed(source)
        for layer in self.encoder:
            x = layer(x, None, mask)
        memory = self.encoder_norm(x)
        y = self.embed(target)
        for layer in self.decoder:
            y = layer(y, memory, mask)
        return self.decoder_norm(y) @ self.embedding.weight.t()


def to_ctranslate2(model, pieces, folder):
    """Writes the model in CTranslate2's format, in float32; int8 is chosen when it is loaded."""
    from ctranslate2.specs import TransformerSpec

    def array(tensor):
        return tensor.detach().float().contiguous().numpy()

    def norm(spec, module):
        spec.gamma, spec.beta = array(module.weight), array(module.bias)

    def linear(spec, *modules):
        spec.weight = array(torch.cat([m.weight for m in modules]))
        spec.bias = array(torch.cat([m.bias for m in modules]))

    spec = TransformerSpec.from_config((len(model.encoder), len(model.decoder)),
                                       model.encoder[0].self_attention.heads, pre_norm=True)
    for side, layers, last in ((spec.encoder, model.encoder, model.encoder_norm),
                               (spec.decoder, model.decoder, model.decoder_norm)):
        table = side.embeddings[0] if isinstance(side.embeddings, list) else side.embeddings
        table.weight = array(model.embedding.weight)
        side.scale_embeddings = True
        side.position_encodings.encodings = array(model.positions)
        norm(side.layer_norm, last)
        for part, layer in zip(side.layer, layers):
            own = layer.self_attention
            norm(part.self_attention.layer_norm, layer.norms[0])
            linear(part.self_attention.linear[0], own.query, own.key_value)
            linear(part.self_attention.linear[1], own.output)
            if layer.attention:
                norm(part.attention.layer_norm, layer.norms[1])
                linear(part.attention.linear[0], layer.attention.query)
                linear(part.attention.linear[1], layer.attention.key_value)
                linear(part.attention.linear[2], layer.attention.output)
            norm(part.ffn.layer_norm, layer.norms[-1])
            linear(part.ffn.linear_0, layer.inner)
            linear(part.ffn.linear_1, layer.outer)
    spec.decoder.projection.weight = array(model.embedding.weight)
    spec.register_source_vocabulary(pieces)
    spec.register_target_vocabulary(pieces)
    spec.validate()
    spec.optimize()
    folder.mkdir(parents=True, exist_ok=True)
    spec.save(str(folder))
