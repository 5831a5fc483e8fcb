//! Values known when packing: bytes in memory, or expressions over parameters that are read when the blob is written, so
//! that weights of a gigabyte pass through in pieces.

use std::sync::Arc;

/// The value of a constant tensor.
#[derive(Debug, Clone)]
pub enum Data {
    /// Little-endian elements in the tensor's dtype, row-major.
    Bytes(Arc<[u8]>),
    /// f32 elements computed from the weights source.
    Lazy(Arc<Expr>),
}

/// An f32 array computed from parameters.
#[derive(Debug)]
pub enum Expr {
    /// The parameter of this name and (traced) shape, from the weights source.
    Param {
        /// Key in the weights file.
        key: String,
        /// Extents.
        shape: Vec<usize>,
    },
    /// Literal values.
    Literal {
        /// Row-major values.
        values: Vec<f32>,
        /// Extents.
        shape: Vec<usize>,
    },
    /// Axis `i` of the result is axis `perm[i]` of `of`.
    Permute {
        /// The operand.
        of: Arc<Expr>,
        /// The permutation.
        perm: Vec<usize>,
    },
    /// Same elements, other extents.
    Reshape {
        /// The operand.
        of: Arc<Expr>,
        /// The new extents.
        shape: Vec<usize>,
    },
    /// The elements along the last axis in the opposite order.
    Reversed {
        /// The operand.
        of: Arc<Expr>,
    },
    /// Elementwise, `b` broadcast to `a` by NumPy's rules.
    Binary {
        /// The operation.
        op: ExprOp,
        /// First operand; has the result's shape.
        a: Arc<Expr>,
        /// Second operand.
        b: Arc<Expr>,
    },
    /// The sum of each of the first axis's slices.
    RowSums {
        /// The operand.
        of: Arc<Expr>,
    },
    /// 1 / sqrt(of + epsilon)
    RsqrtEpsilon {
        /// The operand.
        of: Arc<Expr>,
        /// Added before the root.
        epsilon: f32,
    },
}

/// Operations of [`Expr::Binary`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "named by their operation")]
pub enum ExprOp {
    Add,
    Sub,
    Mul,
    Div,
}

impl Data {
    /// A parameter read from the weights source.
    pub fn param(key: &str, shape: &[usize]) -> Self {
        Data::Lazy(Arc::new(Expr::Param {
            key: key.to_string(),
            shape: shape.to_vec(),
        }))
    }

    /// f32 values in memory.
    pub fn from_f32(values: &[f32]) -> Self {
        Data::Bytes(values.iter().flat_map(|v| v.to_le_bytes()).collect())
    }

    /// As an expression; bytes are taken to be f32.
    pub fn to_expr(&self, shape: &[usize]) -> Arc<Expr> {
        match self {
            Data::Lazy(expr) => Arc::clone(expr),
            Data::Bytes(bytes) => Arc::new(Expr::Literal {
                values: bytes
                    .as_chunks::<4>()
                    .0
                    .iter()
                    .map(|word| f32::from_le_bytes(*word))
                    .collect(),
                shape: shape.to_vec(),
            }),
        }
    }

    /// i32 values in memory.
    pub fn from_i32(values: &[i32]) -> Self {
        Data::Bytes(values.iter().flat_map(|v| v.to_le_bytes()).collect())
    }
}

impl Expr {
    /// Whole numbers times what each of them counts; passes find the integers in the product.
    pub fn multiples(whole: Vec<f32>, steps: Vec<f32>, shape: &[usize]) -> Self {
        let literal = |values: Vec<f32>| {
            let shape = shape.to_vec();
            Arc::new(Expr::Literal { values, shape })
        };
        Expr::Binary {
            op: ExprOp::Mul,
            a: literal(whole),
            b: literal(steps),
        }
    }

    /// Extents of the result.
    pub fn shape(&self) -> Vec<usize> {
        match self {
            Expr::Param { shape, .. } | Expr::Literal { shape, .. } | Expr::Reshape { shape, .. } => shape.clone(),
            Expr::Permute { of, perm } => {
                let shape = of.shape();
                perm.iter().map(|&axis| shape[axis]).collect()
            }
            Expr::Binary { a, .. } => a.shape(),
            Expr::RowSums { of } => of.shape().into_iter().take(1).collect(),
            Expr::Reversed { of } | Expr::RsqrtEpsilon { of, .. } => of.shape(),
        }
    }
}
