"""The functions of the kernel language, by what they do; the package above offers them all."""
