//! Every test that goes through a boundary, in one binary.

mod admission;
mod architecture;
mod arguments;
mod autocast;
mod breadth;
mod check;
mod codes;
mod command_line;
mod complex;
mod cuda_device;
#[cfg(unix)]
mod cuda_graphs;
mod cuda_host;
mod cuda_text;
mod damage;
mod differential;
#[cfg(unix)]
mod distributions;
mod docs;
mod draws;
mod editor;
mod elementwise;
mod environment;
mod errors;
mod events;
mod example_scripts;
mod examples;
mod explain;
mod files;
mod fmt;
mod func;
mod func_table;
mod golden;
mod habits;
mod held_steps;
mod installed;
#[cfg(unix)]
mod jupyter;
mod language;
mod late;
mod limits;
mod lsp;
mod models;
mod names;
mod nn;
mod opinfo;
mod opinfo_host;
mod optim;
mod print;
mod profile;
mod races;
mod random;
mod random_programs;
#[cfg(unix)]
mod repl;
mod resume;
mod rows;
mod rows_reduce;
mod rows_view;
mod scripts;
mod semantics;
mod spectral;
mod std_docs;
mod std_tests;
#[cfg(unix)]
mod terminal;
mod text;
mod training;
mod try_blocks;
mod views;
mod waits;
