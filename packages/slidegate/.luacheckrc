std = 'lua51'
max_line_length = 130
read_globals = { 'redis', 'cjson', 'cmsgpack', 'struct', 'KEYS', 'ARGV', 'unpack' }
-- The parts are joined into one script, in which names of one part are those of another.
ignore = { '4..' }
