mod files;
mod print;
