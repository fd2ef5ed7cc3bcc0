"""Past one machine: studies, collectors and memories on a Ray cluster; needs the extra `ray`."""
