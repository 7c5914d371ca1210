//! Layers and losses of networks: `torch.nn.functional`.

pub mod activation;
pub mod activation_backward;
pub mod attention;
pub mod conv;
pub mod ctc;
pub mod distance;
pub mod dropout;
pub mod embedding;
pub mod embedding_bag;
pub mod fractional_pool;
pub mod grid_sample;
pub mod interpolate;
pub mod likelihood;
pub mod loss;
pub mod multihead;
pub mod native_norm;
pub mod norm;
pub mod padding;
pub mod pdist;
pub mod pointwise_loss;
pub mod pool;
pub mod recurrent;
pub mod softmax;
pub mod unfold;
pub mod windows;
