//! Keys of the configuration file: their paths, their forms, and what is wrong with their values.

pub(crate) mod claim;
pub(crate) mod path;
pub(crate) mod read_all;
pub(crate) mod text_list;
