mod files;
mod opinfo;
mod opinfo_host;
mod print;
