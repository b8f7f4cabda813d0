"""What happens with chunks over time: replanning, handing on, recording, playing back."""
