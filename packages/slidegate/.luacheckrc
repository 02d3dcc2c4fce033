std = 'lua51'
max_line_length = 130
read_globals = { 'redis', 'cjson', 'cmsgpack', 'struct', 'KEYS', 'ARGV', 'unpack' }
