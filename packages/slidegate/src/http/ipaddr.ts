// The package ipaddr.js. Files that only import packages aren't bundled with others, so apps that don't use them omit them.
import ipaddr from 'ipaddr.js'

export { ipaddr }
