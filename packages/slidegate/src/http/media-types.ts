// The part of the package negotiator that reads media types.
import preferredMediaTypes from 'negotiator/lib/mediaType.js'

export { preferredMediaTypes }
