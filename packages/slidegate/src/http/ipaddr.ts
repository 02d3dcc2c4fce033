// The package ipaddr.js. A file that imports only packages isn't bundled with others, so apps that don't need it omit it.
import ipaddr from 'ipaddr.js'

export { ipaddr }
