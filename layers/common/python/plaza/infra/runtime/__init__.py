"""What any module may use, without I/O: clocks, the process, errors, settings, logs, codecs."""
