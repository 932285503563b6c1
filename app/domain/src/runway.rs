//! Geometry of the lease runway, in per cent of its track. (Drawn by the `Runway` component.)
