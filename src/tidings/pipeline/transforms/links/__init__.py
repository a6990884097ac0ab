"""From measurements to a model of every link: frames in, frames out."""
